# SPDX-License-Identifier: Apache-2.0
# Every row over the runs in order of time, over its first run; a step is a filled mark on the run that begins a level.
stats 'points.tsv' using (column('series')) name 'S' nooutput
stats 'points.tsv' using (column('run')) name 'R' nooutput
n = int(S_max)
set lmargin at screen 0.13 # 1.0045 is wide
set bmargin at screen 0.24
set xrange [0.5:R_max + 0.5]
set xlabel 'run, in order of time'
set ylabel 'over the first run'
set xtics 1, ceil(R_max / 12.0)
set key bottom left maxrows 2 at screen 0.13, screen 0.06
set arrow 99 from graph 0, first 1 to graph 1, first 1 nohead lc rgb '#404040' lw 0.8 back
array name[n]
do for [i = 1:n] { name[i] = ''; stats 'points.tsv' using (int(column('series')) == i ? (name[i] = stringcolumn('label'), 1) : 0) nooutput }
plot for [i = 1:n] 'points.tsv' using (column('series') == i ? column('run') : NaN):(column('ratio')) with linespoints ls (i - 1) % 8 + 1 ps 0.5 title name[i], \
     for [i = 1:n] 'points.tsv' using (column('series') == i ? column('run') : NaN):(column('step')) with points ls (i - 1) % 8 + 1 ps 2 notitle
