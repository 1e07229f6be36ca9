/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files that belong to the program lie. */
#ifndef BASE_DATA_FOLDER_H
#define BASE_DATA_FOLDER_H

/* Where protocols/ and plots/ are: beside the sources or under PREFIX/share/bench; BENCH_DATA
 * overrides. NULL if not found. */
const char *data_folder(const char *which);

#endif
