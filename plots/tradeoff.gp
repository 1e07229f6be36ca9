# SPDX-License-Identifier: Apache-2.0
# What is lost over what is gained: each row a point with its 95 % interval and its name. Best is where one stands alone.
eval axis_x
eval axis_y
set xlabel x_label offset 0,0.4
set ylabel y_label offset 0,0
if (strlen(note) > 0) { set label 904 note at screen 0.98,0.027 right font ',10' textcolor rgb '#707070' front }
named(s) = s eq '-' ? '' : s
unset key
plot 'tradeoff.tsv' using (column('x')):(column('y')):(column('y_lo')):(column('y_hi')) with yerrorbars ls 1 dt 1, \
     '' using (column('x')):(column('y')):(named(stringcolumn('right'))) with labels left offset 0.8,0.5 font ',11', \
     '' using (column('x')):(column('y')):(named(stringcolumn('left'))) with labels right offset -0.8,0.5 font ',11'
