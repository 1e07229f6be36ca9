# SPDX-License-Identifier: Apache-2.0
# Throughput and step time against the batch: points with 95 % intervals, the fitted hinge, the knee and its interval,
# and where the measured ridge predicts it.
max(a, b) = a > b ? a : b
known(v) = v == v
step(g, x) = max(level[g], c0[g] + c1[g] * x)
rate_of(x, t) = x / t * (t_unit eq 's' ? 1 : t_unit eq 'ms' ? 1e3 : 1e6)

eval bare_x
set multiplot
if (strlen(note) > 0) { set label 904 note at screen 0.98,0.027 right font ',10' textcolor rgb '#707070' front }

do for [g = 1:n] {
    if (known(knee_lo[g])) {
        set object 100+g rectangle from first knee_lo[g], graph 0 to first knee_hi[g], graph 1 \
            fc rgb word(colour, g) fillstyle transparent solid 0.13 noborder behind
    }
    if (known(knee[g])) {
        set arrow 100+g from first knee[g], graph 0 to first knee[g], graph 1 nohead ls g lw 1 dt (6,4) back
    }
    if (known(ridge[g]) && g == 1) {
        set arrow 200+g from first ridge[g], graph 0 to first ridge[g], graph 1 nohead lc rgb '#404040' lw 1 dt (2,3) back
    }
}

set tmargin at screen 0.875
set bmargin at screen 0.525
eval axis_rate
set ylabel y_label offset 0,0
do for [g = 1:n] {
    if (known(knee[g])) {
        row = 0.06 + 0.085 * (g - 1)
        if (right[g]) { set label 100+g knee_words[g] at first (known(knee_hi[g]) ? knee_hi[g] : knee[g]), graph row left offset character 0.8,0 front } \
        else { set label 100+g knee_words[g] at first (known(knee_lo[g]) ? knee_lo[g] : knee[g]), graph row right offset character -0.8,0 front }
    }
}
set key top left
if (n == 1) { unset key }
plot for [g = 1:n] (known(level[g]) ? rate_of(x, step(g, x)) : NaN) with lines ls g lw 1.2 notitle, \
     for [g = 1:n] sprintf('curve%d.tsv', g) using (column('x')):(known(level[g]) ? NaN : column('y')) \
         with lines ls g lw 0.8 notitle, \
     for [g = 1:n] sprintf('curve%d.tsv', g) using (column('x')):(column('y')):(column('y_lo')):(column('y_hi')) \
         with yerrorbars ls g dt 1 title name[g]

eval unset_page
unset label 904
do for [g = 1:n] { if (known(knee[g])) { unset label 100+g } }
do for [g = 1:n] {
    if (known(ridge[g]) && g == 1) {
        if (known(knee[g]) && !right[g]) { set label 200 ridge_words[g] at first (known(knee_lo[g]) && knee_lo[g] < ridge[g] ? knee_lo[g] : ridge[g]), graph 0.9 right offset character -0.8,0 front } \
        else { set label 200 ridge_words[g] at first (known(knee_hi[g]) && knee_hi[g] > ridge[g] ? knee_hi[g] : ridge[g]), graph 0.9 left offset character 0.8,0 front }
    }
}
set tmargin at screen 0.485
set bmargin at screen 0.135
eval axis_time
set ylabel 'time of a step, '.t_unit offset 0,0
set xlabel x_label offset 0,0.4
eval axis_x
unset key
plot for [g = 1:n] (known(level[g]) ? step(g, x) : NaN) with lines ls g lw 1.2 notitle, \
     for [g = 1:n] sprintf('curve%d.tsv', g) using (column('x')):(known(level[g]) ? NaN : column('t')) \
         with lines ls g lw 0.8 notitle, \
     for [g = 1:n] sprintf('curve%d.tsv', g) using (column('x')):(column('t')):(column('t_lo')):(column('t_hi')) \
         with yerrorbars ls g dt 1 notitle
unset multiplot
