# SPDX-License-Identifier: Apache-2.0
# A metric against a swept key: points with 95 % intervals, and the fitted power law over the range where it holds; below it,
# where the protocol declares one, another metric of the same rows. What stands beside a curve is a broken line of its colour.
known(v) = v == v
law(g, x) = known(exponent[g]) && x >= 0.999 * from[g] ? prefactor[g] * x**exponent[g] : NaN
law_below(g, x) = known(exponent_below[g]) && x >= 0.999 * from_below[g] ? prefactor_below[g] * x**exponent_below[g] : NaN

if (panels == 2) { set multiplot; set bmargin at screen 0.525; eval bare_x } else { eval axis_x; set xlabel x_label offset 0,0.4 }
eval axis_y
set ylabel y_label offset 0,0
if (strlen(note) > 0) { set label 904 note at screen 0.98,0.027 right font ',10' textcolor rgb '#707070' front }
do for [m = 1:n_marks] {
    set arrow 300+m from first mark_x[m], graph 0 to first mark_x[m], graph 1 nohead lc rgb '#606060' lw 0.9 dt (4,4) back
    set label 300+m mark_name[m] at first mark_x[m], graph 1.02 center font ',10' textcolor rgb '#404040'
}
if (strlen(key_place) > 0) { eval 'set key '.key_place } else {
    set rmargin at screen 0.955 - 0.05 - 0.0095 * key_letters
    set key at screen 0.955 - 0.04 - 0.0095 * key_letters,0.865 top left Left reverse samplen 1.5
}
if (n_marks > 0) { set key top right Right noreverse; set tmargin at screen 0.845 }
if (n == 1 && strlen(words[1]) == 0) { unset key }
# An empty loop would be gone through once all the same.
beside = ''
if (own < n) {
    beside = "for [g = own+1:n] sprintf('curve%d.tsv', g) using (column('x')):(column('y'))" \
        ." with lines ls int(of[g]) lw 1.1 dt 2 title words[g],"
}
plot for [g = 1:own] law(g, x) with lines ls g lw 1.1 notitle, \
     for [g = 1:own] sprintf('curve%d.tsv', g) using (column('x')):(known(exponent[g]) ? NaN : column('y')) \
         with lines ls g lw 0.8 notitle, @beside \
     for [g = 1:own] sprintf('curve%d.tsv', g) using (column('x')):(column('y')):(column('y_lo')):(column('y_hi')) \
         with yerrorbars ls g dt 1 title words[g]
if (panels == 2) {
    eval unset_page
    unset label 904
    do for [m = 1:n_marks] { unset label 300+m }
    set tmargin at screen 0.485
    set bmargin at screen 0.145
    eval axis_x
    set xlabel x_label offset 0,0.4
    eval axis_y_below
    set ylabel y_label_below offset 0,0
    if (strlen(key_place_below) > 0) { eval 'set key '.key_place_below } else { unset key }
    plot for [g = 1:n_below] law_below(g, x) with lines ls g lw 1.1 notitle, \
         for [g = 1:n_below] sprintf('below%d.tsv', g) using (column('x')):(known(exponent_below[g]) ? NaN : column('y')) \
             with lines ls g lw 0.8 notitle, \
         for [g = 1:n_below] sprintf('below%d.tsv', g) using (column('x')):(column('y')):(column('y_lo')):(column('y_hi')) \
             with yerrorbars ls g dt 1 title words_below[g]
    unset multiplot
}
