// kernels/neon.cpp: the kernels for 64-bit ARM processors, all of which have NEON
// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/kernels.hpp"

#if defined(__aarch64__) && defined(__GNUC__)
#include <arm_neon.h>

#include <algorithm>

#include "kernels/lanes.hpp"

namespace hdicore {
namespace {

// 16 ranks or units.
struct Lanes {
    uint32x4_t parts[4];
};

inline Lanes load(const std::uint32_t* from) noexcept {
    return {{vld1q_u32(from), vld1q_u32(from + 4), vld1q_u32(from + 8), vld1q_u32(from + 12)}};
}
inline Lanes load(const std::uint16_t* from) noexcept {
    const uint16x8_t a = vld1q_u16(from), b = vld1q_u16(from + 8);
    return {{vmovl_u16(vget_low_u16(a)), vmovl_high_u16(a), vmovl_u16(vget_low_u16(b)),
             vmovl_high_u16(b)}};
}
inline void store(std::uint32_t* to, const Lanes& lanes) noexcept {
    for (std::size_t k = 0; k < 4; ++k) vst1q_u32(to + 4 * k, lanes.parts[k]);
}

template <class Rank>
std::size_t copy_entries(std::span<const EntrySlice> slices, std::span<const Rank> ranks,
                         std::span<const std::uint32_t> units, EntryBuffer& buffer) noexcept {
    std::size_t n_read = 0;
    for (; n_read < slices.size() && buffer.n < EntryBuffer::enough; ++n_read) {
        const EntrySlice& slice = slices[n_read];
        if (!has_room(slice, ranks, units)) {
            portable_kernels.entries<Rank>().copy(slices.subspan(n_read, 1), ranks, units, buffer);
            continue;
        }
        std::uint32_t e = 0;
        do {
            store(buffer.ranks + buffer.n + e, load(ranks.data() + slice.begin + e));
            store(buffer.units + buffer.n + e, load(units.data() + slice.units + e));
            e += step;
        } while (e < slice.n);
        buffer.n += slice.n;
    }
    return n_read;
}

// Lanes of 16 or 32 bits that are compared at once.
template <class Rank>
struct Compared;
template <>
struct Compared<std::uint16_t> {
    using Register = uint16x8_t;
    static Register load(const std::uint16_t* from) noexcept { return vld1q_u16(from); }
    static Register all(rank_t rank) noexcept {
        return vdupq_n_u16(static_cast<std::uint16_t>(rank));
    }
    static Register at_most(Register a, Register b) noexcept { return vcleq_u16(a, b); }
    // Those of `kept` for which `is_true` has all bits set.
    static std::uint32_t count(Register is_true, Register kept) noexcept {
        return vaddvq_u16(vshrq_n_u16(vandq_u16(is_true, kept), 15));
    }
};
template <>
struct Compared<rank_t> {
    using Register = uint32x4_t;
    static Register load(const rank_t* from) noexcept { return vld1q_u32(from); }
    static Register all(rank_t rank) noexcept { return vdupq_n_u32(rank); }
    static Register at_most(Register a, Register b) noexcept { return vcleq_u32(a, b); }
    static std::uint32_t count(Register is_true, Register kept) noexcept {
        return vaddvq_u32(vshrq_n_u32(vandq_u32(is_true, kept), 31));
    }
};

// Entries of a leaf ascend, so those of a tail are its first or its last ones: 16 are copied from
// where they begin, and those that are too many are overwritten by the next ones.
template <class Rank>
class TailCopy {
  public:
    TailCopy(const Tails& tails, EntryBuffer& buffer) noexcept
        : low_(Compare::all(tails.low)), high_(Compare::all(tails.high)), buffer_(buffer) {}

    void copy(const Rank* ranks, const std::uint32_t* units, std::uint32_t size) noexcept {
        std::uint32_t n = step;
        for (std::uint32_t e = 0; e < size && n == step; e += step) {
            n = count(ranks + e, std::min(size - e, step),
                      [&](Register r) { return Compare::at_most(r, low_); });
            keep(ranks + e, units + e, n, low_mass_);
        }
        n = step;
        for (std::uint32_t end = size; end > 0 && n == step;) {
            const std::uint32_t e = std::max(end, step) - step;
            n = count(ranks + e, end - e, [&](Register r) { return Compare::at_most(high_, r); });
            keep(ranks + end - n, units + end - n, n, high_mass_);
            end = e;
        }
    }

    mass_t low_mass() const noexcept { return vaddvq_u64(low_mass_); }
    mass_t high_mass() const noexcept { return vaddvq_u64(high_mass_); }

  private:
    using Compare = Compared<Rank>;
    using Register = typename Compare::Register;

    // How many of the first n of 16 ranks `holds` is true for.
    template <class Holds>
    static std::uint32_t count(const Rank* ranks, std::uint32_t n, const Holds& holds) noexcept {
        constexpr std::uint32_t lanes = sizeof(Register) / sizeof(Rank);
        const Rank* kept = first_lanes<Rank>.data() + step - n;
        std::uint32_t found = 0;
        for (std::uint32_t k = 0; k < step; k += lanes) {
            found += Compare::count(holds(Compare::load(ranks + k)), Compare::load(kept + k));
        }
        return found;
    }

    // Appends n <= 16 entries. Their units fit 32 bits together.
    void keep(const Rank* ranks, const std::uint32_t* units, std::uint32_t n,
              uint64x2_t& mass) noexcept {
        const Lanes u = load(units);
        store(buffer_.ranks + buffer_.n, load(ranks));
        store(buffer_.units + buffer_.n, u);
        buffer_.n += n;
        const Lanes kept = load(first_lanes<std::uint32_t>.data() + step - n);
        uint32x4_t sum = vandq_u32(u.parts[0], kept.parts[0]);
        for (std::size_t k = 1; k < 4; ++k) {
            sum = vaddq_u32(sum, vandq_u32(u.parts[k], kept.parts[k]));
        }
        mass = vpadalq_u32(mass, sum);
    }

    Register low_;
    Register high_;
    uint64x2_t low_mass_ = vdupq_n_u64(0);
    uint64x2_t high_mass_ = vdupq_n_u64(0);
    EntryBuffer& buffer_;
};

template <class Rank>
std::size_t copy_tails(std::span<const EntrySlice> slices, std::span<const Rank> ranks,
                       std::span<const std::uint32_t> units, Tails& tails,
                       EntryBuffer& buffer) noexcept {
    TailCopy<Rank> copy(tails, buffer);
    std::size_t n_read = 0;
    for (; n_read < slices.size() && buffer.n < EntryBuffer::enough; ++n_read) {
        const EntrySlice& slice = slices[n_read];
        if (!has_room(slice, ranks, units)) {
            portable_kernels.entries<Rank>().copy_tails(slices.subspan(n_read, 1), ranks, units,
                                                        tails, buffer);
            continue;
        }
        const Rank* first = ranks.data() + slice.begin;
        tails.first = std::min<rank_t>(tails.first, first[0]);
        tails.last = std::max<rank_t>(tails.last, first[slice.n - 1]);
        copy.copy(first, units.data() + slice.units, slice.n);
    }
    tails.low_mass += copy.low_mass();
    tails.high_mass += copy.high_mass();
    return n_read;
}

inline Lanes load_counts(const std::uint8_t* from) noexcept {
    const uint8x16_t bytes = vld1q_u8(from);
    const uint16x8_t a = vmovl_u8(vget_low_u8(bytes)), b = vmovl_high_u8(bytes);
    return {{vmovl_u16(vget_low_u16(a)), vmovl_high_u16(a), vmovl_u16(vget_low_u16(b)),
             vmovl_high_u16(b)}};
}
inline Lanes load_counts(const std::uint16_t* from) noexcept {
    return load(from);
}

template <class Count>
void sum_counts(const Count* counts, std::size_t row_length, std::span<const EntrySlice> slices,
                const double* entry_mass, float* sums) noexcept {
    constexpr std::size_t n_parts = sum_block / 4;
    float32x4_t parts[n_parts];
    for (float32x4_t& part : parts) part = vdupq_n_f32(0);
    for (std::size_t l = 0; l < slices.size(); ++l) {
        const Count* row = counts + slices[l].leaf * row_length;
        const auto mass = static_cast<float>(entry_mass[l]);
        for (std::size_t k = 0; k < n_parts; k += 4) {
            const Lanes read = load_counts(row + 4 * k);
            for (std::size_t p = 0; p < 4; ++p) {
                parts[k + p] = vfmaq_n_f32(parts[k + p], vcvtq_f32_u32(read.parts[p]), mass);
            }
        }
    }
    for (std::size_t k = 0; k < n_parts; ++k) vst1q_f32(sums + 4 * k, parts[k]);
}

std::size_t take_ranks(std::uint64_t* words, std::size_t begin, std::size_t end,
                       std::uint64_t* nonzero, rank_t* bases, rank_t* out) noexcept {
    const std::size_t n_words = list_nonzero(words, begin, end, 0, nonzero, bases);
    std::size_t n = 0;
    for (std::size_t w = 0; w < n_words; ++w) {
        std::uint64_t bits = nonzero[w];
        const uint8x8_t in_bytes = vcnt_u8(vcreate_u8(bits));
        const std::size_t count = vaddv_u8(in_bytes);
        if (count <= 4) {
            write_four_ranks(bits, bases[w], out + n);
            n += count;
            continue;
        }
        std::uint64_t counts = vget_lane_u64(vreinterpret_u64_u8(in_bytes), 0);
        for (unsigned k = 0; k < 64; k += 8, bits >>= 8, counts >>= 8) {
            const uint16x8_t places = vmovl_u8(vld1_u8(places_of_bits[bits & 0xff].data()));
            const uint32x4_t base = vdupq_n_u32(bases[w] + k);
            vst1q_u32(out + n, vaddw_u16(base, vget_low_u16(places)));
            vst1q_u32(out + n + 4, vaddw_high_u16(base, places));
            n += counts & 0xff;
        }
    }
    return n;
}

const Kernels neon{
    .name = "neon",
    .of_entries = {EntryKernels<std::uint16_t>{copy_entries<std::uint16_t>,
                                               copy_tails<std::uint16_t>},
                   EntryKernels<rank_t>{copy_entries<rank_t>, copy_tails<rank_t>}},
    .of_counts = {sum_counts<std::uint8_t>, sum_counts<std::uint16_t>},
    .take_ranks = take_ranks,
    .list_masses = list_masses_in_turn,
    .lists_masses_fast = false,
    // As with AVX2: no machine to measure on was at hand.
    .min_entries_for_tails = 8,
    .min_entries_for_buckets = 32,
};

}  // namespace

const Kernels* neon_kernels() noexcept {
    return &neon;
}

}  // namespace hdicore
#endif
