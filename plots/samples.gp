# SPDX-License-Identifier: Apache-2.0
# Left: every execution in the order in which it ran, over its row's median, rounds apart. Right: the same as a distribution.
eval axis_y
set multiplot
set tmargin at screen 0.84
set bmargin at screen 0.27
set rmargin at screen 0.70
set xrange [0:last]
set xlabel 'executions in the order in which they ran' offset 0,0.4
set ylabel 'time / median of the row' offset 0,0
do for [r = 1:n_rounds] {
    if (r > 1) { set arrow 100+r from first round[r], graph 0 to first round[r], graph 1 nohead lc rgb '#9A9A9A' lw 0.8 dt (3,3) back }
    if (n_rounds <= 16) {
        to = r < n_rounds ? round[r + 1] : last
        word = r == 1 ? 'round 1' : sprintf('%d', r)
        set label 100+r word at first (round[r] + to) / 2, graph 1.03 center textcolor rgb '#606060' front
    }
}
set arrow 99 from graph 0, first 1 to graph 1, first 1 nohead lc rgb '#404040' lw 0.8 back
small = 0.35
set key at graph 0,-0.165 left top horizontal Left reverse maxcols 3 samplen 2.5 width 1
plot for [i = 1:n] sprintf('row%d.tsv', i) using (column('place')):(column('ratio')) with points ls i ps small notitle, \
     for [i = 1:n] keyentry with linespoints ls i title name[i]

eval unset_page
do for [r = 1:n_rounds] {
    if (r > 1) { unset arrow 100+r }
    if (n_rounds <= 16) { unset label 100+r }
}
set lmargin at screen 0.745
set rmargin at screen 0.965
set xrange [0:1]
set xtics ('0' 0, '50 %%' 0.5, '100 %%' 1)
set xlabel 'share of executions'
set ylabel ''
eval bare_y
unset key
if (strlen(note) > 0) { set label 904 note at screen 0.98,0.027 right font ',10' textcolor rgb '#707070' front }
plot for [i = 1:n] sprintf('row%d.tsv', i) using (column('share')):(column('sorted')) with lines ls i notitle
unset multiplot
