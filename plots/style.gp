# SPDX-License-Identifier: Apache-2.0
# What all pictures share: colours that colour-blind people tell apart (Okabe, Ito 2008), each with its own point and dash,
# so that print without colour says the same; title, footer, ticks. Settings come from settings.gp, data as tables.
set encoding utf8
set datafile separator "\t"
set datafile columnheaders
set datafile missing 'NaN'

set style line 1 lc rgb '#0072B2' lw 1.6 pt 7  ps 0.9 dt 1
set style line 2 lc rgb '#D55E00' lw 1.6 pt 5  ps 0.9 dt (8,4)
set style line 3 lc rgb '#009E73' lw 1.6 pt 9  ps 1.1 dt (3,3)
set style line 4 lc rgb '#CC79A7' lw 1.6 pt 13 ps 1.1 dt (12,4,3,4)
set style line 5 lc rgb '#E69F00' lw 1.6 pt 11 ps 1.1 dt (12,4)
set style line 6 lc rgb '#56B4E9' lw 1.6 pt 6  ps 0.9 dt (5,5)
set style line 7 lc rgb '#000000' lw 1.6 pt 4  ps 0.9 dt 1
set style line 8 lc rgb '#8C8C8C' lw 1.6 pt 8  ps 1.1 dt (2,4)

set border 3 lc rgb '#404040' lw 0.8
set tics nomirror out scale 0.6 textcolor rgb '#202020'
set grid xtics ytics lc rgb '#D6D6D6' lw 0.7 dt 1
set bars 0.6
set key nobox samplen 2.2 spacing 1.15 textcolor rgb '#202020'
set lmargin at screen 0.11
set samples 1000
set rmargin at screen 0.965
set tmargin at screen 0.865
set bmargin at screen 0.145

# Title, subject and footer belong to the page: a script with several panels draws them once, in the first.
set label 901 question at screen 0.02,0.962 left font ','.sprintf('%g', question_size) front
set label 902 subject at screen 0.02,0.917 left textcolor rgb '#606060' front
set label 903 footer at screen 0.02,0.027 left font ',10' textcolor rgb '#707070' front
colour = '#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #000000 #8C8C8C'
unset_page = 'unset label 901; unset label 902; unset label 903'
