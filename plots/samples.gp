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
unset key
# The legend lies below both panels, in two columns of its own: gnuplot's would run over the footer where names are long.
do for [i = 1:n] {
    legend_x = 0.025 + (i > (n + 1) / 2 ? 0.49 : 0)
    legend_y = 0.165 - 0.037 * ((i - 1) % ((n + 1) / 2))
    set arrow 200+i from screen legend_x, legend_y to screen legend_x + 0.045, legend_y nohead ls i
    set label 200+i name[i] at screen legend_x + 0.0225, legend_y left offset 3,0 font ',11' point ls i ps 1 textcolor rgb '#202020'
}
plot for [i = 1:n] sprintf('row%d.tsv', i) using (column('place')):(column('ratio')) with points ls i ps small notitle

eval unset_page
do for [i = 1:n] { unset arrow 200+i; unset label 200+i }
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
if (strlen(note) > 0) { set label 904 note at screen 0.98,0.027 right font ',10' textcolor rgb '#707070' front }
plot for [i = 1:n] sprintf('row%d.tsv', i) using (column('share')):(column('sorted')) with lines ls i notitle
unset multiplot
