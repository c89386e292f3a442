// kernels/x86.hpp: whether this compiler makes code for x86 processors that are asked at run time
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// HDICORE_TARGET(instructions) marks a function that uses them. A test that emulates instructions
// defines it as nothing. MinGW's GCC does not align 32 bytes on the stack of Windows.
#if defined(HDICORE_TARGET)
#define HDICORE_X86
#elif defined(__x86_64__) && defined(__GNUC__) && (defined(__clang__) || !defined(_WIN32))
#define HDICORE_X86
#define HDICORE_TARGET(instructions) __attribute__((target(instructions)))
#endif

#ifdef HDICORE_X86
#include <immintrin.h>
#endif
