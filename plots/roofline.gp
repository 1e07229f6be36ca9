# SPDX-License-Identifier: Apache-2.0
# Rates over arithmetic intensity under the roofs that the same run measured; labels come placed, from labels.gp.
min(a, b) = a < b ? a : b
set rmargin at screen 0.835
eval axis_x
eval axis_y
set xlabel 'arithmetic intensity, FLOP/byte' offset 0,0.4
set ylabel 'rate, FLOP/s' offset 0,0
load 'labels.gp'
set key bottom right
if (n == 1) { unset key }
set style fill solid 0.06 noborder
plot min(top, bandwidth[1] * x) with filledcurves y1=0 lc rgb '#404040' notitle, \
     min(top, bandwidth[1] * x) with lines lc rgb '#202020' lw 1.6 notitle, \
     for [b = 2:n_bandwidths] (bandwidth[b] * x <= top ? bandwidth[b] * x : NaN) with lines lc rgb '#606060' lw 1 dt (6,4) notitle, \
     for [p = 1:n_peaks] (peak[p] < top && bandwidth[1] * x >= peak[p] ? peak[p] : NaN) with lines lc rgb '#606060' lw 1 dt (6,4) notitle, \
     for [g = 1:n] sprintf('group%d.tsv', g) using (column('intensity')):(column('gflops')) with points ls g title name[g]
