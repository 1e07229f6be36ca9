// SPDX-License-Identifier: Apache-2.0
// Writes frag_maps.tsv: which element of a matrix each lane of a warp holds, for mma.sync m16n8k16
// and ldmatrix, as CuTe's traits have it. Kernels, their twins on the host and the PTX interpreter
// each read the PTX ISA's tables; this is none of theirs. It needs the headers of PyPI's
// nvidia-cutlass and of the CUDA toolkit: see test_frag_maps_fresh.py.
#include <cuda_runtime.h>

#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>

#include <stdio.h>

// Layouts number the elements of A by row + 16 k, of B by column + 8 k, of C by row + 16 column.
template <class Traits> static void operands() {
    for (int lane = 0; lane < 32; lane++) {
        for (int i = 0; i < 8; i++) {
            const int at = int(typename Traits::ALayout{}(lane, i));
            printf("mma_a\t%d\t%d\t%d\t%d\n", lane, i, at % 16, at / 16);
        }
        for (int i = 0; i < 4; i++) {
            const int at = int(typename Traits::BLayout{}(lane, i));
            printf("mma_b\t%d\t%d\t%d\t%d\n", lane, i, at / 8, at % 8);
        }
        for (int i = 0; i < 4; i++) {
            const int at = int(typename Traits::CLayout{}(lane, i));
            printf("mma_c\t%d\t%d\t%d\t%d\n", lane, i, at % 16, at / 16);
        }
    }
}
// Bit `to` of a lane's four registers comes from a bit of the 32 rows of 128 bits that lanes name.
template <class Traits> static void loads(const char *name) {
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 8; i++) {
            const int from = int(typename Traits::DstLayout{}(lane, 16 * i));
            printf("%s\t%d\t%d\t%d\t%d\n", name, lane, i, from / 128, from % 128 / 16);
        }
}

int main() {
    printf(
        "# operation, lane, 16-bit (mma_c: 32-bit) element of its registers in order, row, column;\n"
        "# ldmatrix: row is the lane that names it. Made by frag_maps.cpp from CuTe's traits.\n");
    using Bf16 = cute::MMA_Traits<cute::SM80_16x8x16_F32BF16BF16F32_TN>;
    using F16 = cute::MMA_Traits<cute::SM80_16x8x16_F32F16F16F32_TN>;
    static_assert(std::is_same<Bf16::ALayout, F16::ALayout>::value &&
                      std::is_same<Bf16::BLayout, F16::BLayout>::value &&
                      std::is_same<Bf16::CLayout, F16::CLayout>::value,
                  "one map serves both types");
    operands<Bf16>();
    loads<cute::Copy_Traits<cute::SM75_U32x4_LDSM_N>>("ldmatrix");
    loads<cute::Copy_Traits<cute::SM75_U16x8_LDSM_T>>("ldmatrix_trans");
}
