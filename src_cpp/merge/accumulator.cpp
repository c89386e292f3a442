// merge/accumulator.cpp: sums entries in a dense array of masses, with a bit for each atom in use
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/accumulator.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <new>
#include <type_traits>

#include "base/types.hpp"
#include "pmf/kaplan_meier.hpp"

namespace hdicore {

namespace {

// So many atoms are looked through in the time of a step of a sort: n log2(n) steps for n ranks,
// of atoms of which a row's lie in about a quarter.
constexpr std::size_t atoms_per_sort_step = 1000;

}  // namespace

struct Accumulator::Memory {
    struct Free {
        void operator()(mass_t* memory) const noexcept { std::free(memory); }
    };

    std::unique_ptr<mass_t[], Free> mass;
    RankSet touched;
    std::vector<rank_t> few;
    std::unique_ptr<rank_t[]> buffer_ranks;
    std::unique_ptr<std::uint32_t[]> buffer_units;
    std::unique_ptr<rank_t[]> ranks;
    std::unique_ptr<double[]> values;
    std::unique_ptr<mass_t[]> cumulative;

    explicit Memory(const LeafIndex& index)
        // Pages of zeros that are not used cost nothing.
        : mass(static_cast<mass_t*>(std::calloc(index.max_atoms(), sizeof(mass_t)))),
          touched(index.max_atoms()) {
        if (!mass) throw std::bad_alloc();
        const std::size_t max_atoms = index.max_atoms() + max_gaps;
        ranks = std::make_unique_for_overwrite<rank_t[]>(max_atoms + RankSet::slack);
        values = std::make_unique_for_overwrite<double[]>(max_atoms);
        cumulative = std::make_unique_for_overwrite<mass_t[]>(max_atoms + 1);
        cumulative[0] = 0;
        few.reserve(index.max_atoms() / atoms_per_sort_step);
        const std::size_t max_buffer =
            2 * EntryBuffer::enough + EntryBuffer::slack +
            (index.arrays().uniform() ? std::min(index.tables().max_leaf_size, max_tabulated_leaf)
                                      : index.tables().max_leaf_size);
        buffer_ranks = std::make_unique_for_overwrite<rank_t[]>(max_buffer);
        buffer_units = std::make_unique_for_overwrite<std::uint32_t[]>(max_buffer);
    }

    static std::shared_ptr<Memory> of(const LeafIndex& index) {
        auto kept = std::static_pointer_cast<Memory>(index.scratch_cache().take());
        return kept ? kept : std::make_shared<Memory>(index);
    }
};

Accumulator::Accumulator(const LeafIndex& index, const Kernels& kernels)
    : index_(index),
      kernels_(kernels),
      memory_(Memory::of(index)),
      mass_(memory_->mass.get()),
      buffer_ranks_(memory_->buffer_ranks.get()),
      buffer_units_(memory_->buffer_units.get()),
      touched_(memory_->touched),
      few_(memory_->few),
      ranks_(memory_->ranks.get()),
      values_(memory_->values.get()),
      cumulative_(memory_->cumulative.get()) {}

Accumulator::~Accumulator() {
    index_.scratch_cache().put(std::move(memory_));
}

template <class Use>
void Accumulator::with_arrays(const Use& use) const noexcept {
    std::visit(
        [&]<class Ranks, class Units>(const Ranks& ranks, const Units& units) {
            if constexpr (std::is_same_v<Units, std::monostate>) {
                use(ranks.view(), index_.uniform_units());
            } else {
                use(ranks.view(), units.view());
            }
        },
        index_.arrays().ranks, index_.arrays().units);
}

void Accumulator::prefetch(RowSlices slices) const noexcept {
    const bool uniform = index_.arrays().uniform();
    with_arrays([&](auto ranks, auto units) {
        for (const EntrySlice& slice : slices) {
            prefetch_line(ranks.data() + slice.begin);
            if (!uniform) prefetch_line(units.data() + slice.units);
        }
    });
}

RankBounds Accumulator::bounds(RowSlices slices) const noexcept {
    return std::visit(
        [&](const auto& ranks) {
            RankBounds found{std::numeric_limits<rank_t>::max(), 0};
            for (const EntrySlice& slice : slices) {
                found.first = std::min<rank_t>(found.first, ranks[slice.begin]);
                found.last = std::max<rank_t>(found.last, ranks[slice.begin + slice.n - 1]);
            }
            return found;
        },
        index_.arrays().ranks);
}

bool Accumulator::has_large(RowSlices slices) const noexcept {
    return index_.arrays().uniform() && index_.tables().max_leaf_size > max_tabulated_leaf &&
           std::ranges::any_of(
               slices, [](const EntrySlice& slice) { return slice.n > max_tabulated_leaf; });
}

bool Accumulator::is_sparse(RowSlices slices) const noexcept {
    const std::size_t most = index_.max_atoms() / atoms_per_sort_step;
    // Units of rows that weigh differently may be 0, which is no mass yet.
    if (most < 2 * slices.size() || !index_.arrays().uniform()) return false;
    std::size_t n = 0;
    for (const EntrySlice& slice : slices) n += slice.n;
    return n * std::bit_width(n) <= most;
}

void Accumulator::add_large(RowSlices slices) noexcept {
    std::size_t n = 0;
    for (const EntrySlice& slice : slices) n += slice.n;
    for (const EntrySlice& slice : slices) {
        if (slice.n == 0) continue;
        const EqualEntries leaf{slice.begin, slice.n, 0, EqualUnits::step(slice.n)};
        add_equal({&leaf, 1}, is_dense(n, index_.max_atoms()));
    }
}

void Accumulator::add_equal(std::span<const EqualEntries> parts, bool dense) noexcept {
    dense_ = dense;
    const auto add_all = [&]<class Ranks>(const Ranks& ranks, const auto& add_one) {
        for (const EqualEntries& part : parts) {
            const auto* rank = ranks.data() + part.begin;
            EqualUnits units(part.step, part.first);
            for (std::uint32_t e = 0; e < part.n; ++e) add_one(rank_t{rank[e]}, units.next());
        }
    };
    std::visit(
        [&](const auto& ranks) {
            if (dense) {
                add_all(ranks, [mass = mass_](rank_t rank, mass_t units) { mass[rank] += units; });
            } else {
                add_all(ranks, [this](rank_t rank, mass_t units) { add(rank, units); });
            }
        },
        index_.arrays().ranks);
}

void Accumulator::add(RowSlices slices, bool dense) noexcept {
    if (has_large(slices)) {
        add_large(slices);
        return;
    }
    with_arrays(
        [&]<class Rank, class Unit>(std::span<const Rank> ranks, std::span<const Unit> units) {
            if constexpr (sizeof(Unit) > sizeof(std::uint32_t)) {
                for (const EntrySlice& slice : slices) {
                    for (std::uint32_t e = 0; e < slice.n; ++e) {
                        add(ranks[slice.begin + e], static_cast<mass_t>(units[slice.units + e]));
                    }
                }
            } else {
                // Units of rows that weigh differently may be 0; their atoms are listed all the
                // same.
                dense_ = dense && kernels_.lists_masses_fast && index_.arrays().uniform();
                sparse_ = !dense_ && is_sparse(slices);
                // Entries are first copied behind each other and then added in one long loop: a
                // loop for each short leaf would end in a mispredicted branch.
                for (std::size_t n_read = 0; n_read < slices.size();) {
                    EntryBuffer buffer{buffer_ranks_, buffer_units_};
                    n_read +=
                        kernels_.entries<Rank>().copy(slices.subspan(n_read), ranks, units, buffer);
                    add_buffer(buffer.n);
                }
            }
        });
}

void Accumulator::add_tails(RowSlices slices, Tails& tails) noexcept {
    with_arrays(
        [&]<class Rank, class Unit>(std::span<const Rank> ranks, std::span<const Unit> units) {
            if constexpr (sizeof(Unit) == sizeof(std::uint32_t)) {
                sparse_ = is_sparse(slices);
                for (std::size_t n_read = 0; n_read < slices.size();) {
                    EntryBuffer buffer{buffer_ranks_, buffer_units_};
                    n_read += kernels_.entries<Rank>().copy_tails(slices.subspan(n_read), ranks,
                                                                  units, tails, buffer);
                    add_buffer(buffer.n);
                }
            }
        });
}

void Accumulator::add_buffer(std::size_t n) noexcept {
    const rank_t* ranks = buffer_ranks_;
    const std::uint32_t* units = buffer_units_;
    if (dense_) {
        mass_t* mass = mass_;
        for (std::size_t e = 0; e < n; ++e) mass[ranks[e]] += units[e];
        return;
    }
    if (sparse_) {
        for (std::size_t e = 0; e < n; ++e) {
            if (mass_[ranks[e]] == 0) few_.push_back(ranks[e]);
            mass_[ranks[e]] += units[e];
        }
        return;
    }
    for (std::size_t e = 0; e < n; ++e) add(ranks[e], static_cast<mass_t>(units[e]));
}

Pmf Accumulator::read(std::size_t output, std::size_t n_trees, RankBounds bounds) noexcept {
    n_atoms_ = 0;
    std::ranges::sort(few_);
    append_atoms(output, bounds.first, bounds.last);
    end_reading();
    return {{values_, n_atoms_}, {cumulative_, n_atoms_ + 1}, n_trees, index_.shift()};
}

Pmf Accumulator::read_empty() noexcept {
    n_atoms_ = 0;
    return {{}, {cumulative_, 1}, 0, index_.shift()};
}

Pmf Accumulator::to_survival(const Pmf& merged) noexcept {
    return kaplan_meier({values_, n_atoms_}, {cumulative_, n_atoms_ + 1}, ranks(),
                        index_.arrays().events.view(), merged.n_trees);
}

PartialPmf Accumulator::read_partial(std::size_t output, std::size_t n_trees,
                                     std::span<const RankRange> ranges, double max_abs) noexcept {
    n_atoms_ = 0;
    std::ranges::sort(few_);
    for (const RankRange& range : ranges) {
        append_gap(range.below);
        if (range.begin < range.end) append_atoms(output, range.begin, range.end - 1);
    }
    end_reading();
    append_gap(static_cast<mass_t>(n_trees) << index_.shift());
    return {{values_, n_atoms_}, {cumulative_, n_atoms_ + 1}, n_trees, index_.shift(), max_abs};
}

std::size_t Accumulator::take(rank_t first, rank_t last, rank_t* ranks) noexcept {
    if (dense_) return kernels_.list_masses(mass_, first, last, ranks);
    if (!sparse_) return touched_.take(first, last, kernels_, ranks);
    const auto begin = std::ranges::lower_bound(few_, first);
    const auto end = std::upper_bound(begin, few_.end(), last);
    std::copy(begin, end, ranks);
    return static_cast<std::size_t>(end - begin);
}

void Accumulator::end_reading() noexcept {
    dense_ = sparse_ = false;
    few_.clear();
}

void Accumulator::append_atoms(std::size_t output, rank_t first, rank_t last) noexcept {
    const double* atoms = index_.atoms(output).data();
    rank_t* ranks = ranks_ + n_atoms_;
    double* values = values_ + n_atoms_;
    mass_t* cumulative = cumulative_ + n_atoms_;
    mass_t* mass = mass_;
    const std::size_t n = take(first, last, ranks);
    mass_t sum = cumulative[0];
    for (std::size_t k = 0; k < n; ++k) {
        const rank_t rank = ranks[k];
        values[k] = atoms[rank];
        cumulative[k + 1] = sum += mass[rank];
        mass[rank] = 0;
    }
    n_atoms_ += n;
}

void Accumulator::append_gap(mass_t upto) noexcept {
    if (upto == cumulative_[n_atoms_]) return;
    values_[n_atoms_++] = nan;
    cumulative_[n_atoms_] = upto;
}

}  // namespace hdicore
