# SPDX-License-Identifier: Apache-2.0
# Live bytes on the device over the time of one visit, stacked by class, with the phases and the peak.
set multiplot
unset grid
set grid ytics lc rgb '#D6D6D6' lw 0.7 dt 1 back
set style fill solid 0.75 noborder
do for [p = 1:n_phases] {
    if (phase_from[p] > 0) {
        set arrow 100+p from first phase_from[p], graph 0 to first phase_from[p], graph 1 nohead lc rgb '#202020' lw 0.7 dt (2,3) front
    }
    if (strlen(phase[p]) > 0) { set label 100+p phase[p] at first phase_from[p], graph 1.03 left offset character 0.4,0 textcolor rgb '#404040' front }
}
set rmargin at screen 0.815
set tmargin at screen 0.845
eval axis_x
if (panels == 2) { set bmargin at screen 0.53; eval bare_x }
eval axis_y
set ylabel 'live, '.unit offset 0,0
set label 905 peak_words at first peak_at,first peak offset character (peak_at > 0.6 * end ? -0.8 : 0.8),0.7 front
if (peak_at > 0.6 * end) { set label 905 right } else { set label 905 left }
set label 906 '' at first peak_at,first peak point pt 8 ps 1.2 lc rgb '#000000' front
set key at screen 0.83,0.845 left top Left reverse samplen 1.2
if (panels == 1) { set xlabel 'ms since the first allocation' offset 0,0.4 }
if (strlen(row) > 0) { set label 907 row at screen 0.98,0.917 right textcolor rgb '#606060' front }
plot for [i = n:1:-1] 'timeline.tsv' using (column('ms')):(column(sprintf('sum%d', i))) \
    with filledcurves y1=0 ls i lw 0.5 dt 1 title name[i], \
    for [i = 1:n] '' using (column('ms')):(column(sprintf('sum%d', i))) with lines lc rgb '#303030' lw 0.5 notitle
if (panels == 2) {
    eval unset_page
    unset label 905
    unset label 906
    unset label 907
    do for [p = 1:n_phases] { if (strlen(phase[p]) > 0) { unset label 100+p } }
    set tmargin at screen 0.475
    set bmargin at screen 0.145
    eval axis_x
    eval axis_rest
    set xlabel 'ms since the first allocation' offset 0,0.4
    set ylabel 'live without '.name[1].', '.rest_unit offset 0,0
    unset key
    plot for [i = n:2:-1] 'timeline.tsv' using (column('ms')):(column(sprintf('rest%d', i))) \
        with filledcurves y1=0 ls i lw 0.5 dt 1 notitle, \
        for [i = 2:n] '' using (column('ms')):(column(sprintf('rest%d', i))) with lines lc rgb '#303030' lw 0.5 notitle
}
unset multiplot
