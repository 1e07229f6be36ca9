# SPDX-License-Identifier: Apache-2.0
# Where the time of a row goes: its parts stacked, their shares in the bars, and the undivided row as a mark beside them.
eval axis_y
set xrange [0.4:n_rows + 0.75]
set xtics ()
set for [r = 1:n_rows] xtics add (label[r] r)
if (n_rows > 8) { set xtics rotate by -30 }
unset grid
set grid ytics lc rgb '#D6D6D6' lw 0.7 dt 1 back
set xlabel x_label offset 0,0.4
set ylabel 'time, '.t_unit offset 0,0
set style fill solid 0.75 border lc rgb '#FFFFFF'
set boxwidth 0.56
set rmargin at screen 0.815
set key at screen 0.83,0.865 left top Left reverse samplen 1.2 invert
plot for [k = n:1:-1] 'parts.tsv' using (column('x')):(column(sprintf('sum%d', k))) with boxes ls k dt 1 title name[k], \
     'shares.tsv' using (column('x')):(column('y')):(stringcolumn(3)) with labels font ',10' textcolor rgb '#000000' notitle, \
     (whole ? 'parts.tsv' : '/dev/null') using (column('x') + 0.38):(column('whole')):(column('lo')):(column('hi')) \
         with yerrorbars lc rgb '#000000' pt 7 ps 0.8 lw 1.4 title (whole ? 'undivided' : '')
