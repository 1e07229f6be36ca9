/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that a GPU's code may call as well: one definition for host and device. */
#ifndef BASE_EVERYWHERE_H
#define BASE_EVERYWHERE_H

#ifdef __CUDACC__
#define EVERYWHERE static inline __host__ __device__
#else
#define EVERYWHERE static inline
#endif

#endif
