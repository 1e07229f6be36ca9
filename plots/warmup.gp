# SPDX-License-Identifier: Apache-2.0
# What the executions of fresh workers take from the first one on, over what they settle at: each round's as points, their
# median as a line; a mark on the axis where the loop's own warm-up ended, on average.
eval axis_x
eval axis_y
set xlabel 'execution since the worker began' offset 0,0.4
set ylabel 'time / what it settles at' offset 0,0
set arrow 99 from graph 0, first 1 to graph 1, first 1 nohead lc rgb '#404040' lw 0.8 back
if (strlen(note) > 0) { set label 904 note at screen 0.98,0.027 right font ',10' textcolor rgb '#707070' front }
do for [i = 1:n] {
    if (ends[i] >= 1) { set arrow 200+i from first ends[i]+0.5, graph 0 to first ends[i]+0.5, graph 0.12 nohead ls i front }
}
set label 905 'upright: from here on the loop samples' at graph 0.99,1.03 right font ',10' textcolor rgb '#606060'
set key top right Left reverse
plot for [i = 1:n] sprintf('all%d.tsv', i) using (column('execution')):(column('ratio')) with points ls i ps 0.3 notitle, \
     for [i = 1:n] sprintf('middle%d.tsv', i) using (column('execution')):(column('ratio')) with lines ls i title name[i]
