// kernels/instructions.hpp: which instructions kernels use, chosen when the program runs
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#define HDICORE_AVX512 1
#define HDICORE_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,popcnt")))
#endif

namespace hdicore {

// Which instructions a kernel uses; the results are the same bits.
enum class Instructions { portable, avx512 };

// The widest that this processor has. The environment variable HDICORE_INSTRUCTIONS, read once, may
// say "portable".
Instructions widest_instructions() noexcept;

}  // namespace hdicore
