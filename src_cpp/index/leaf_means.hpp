// index/leaf_means.hpp: means of leaves as whole numbers, so that those of rows are exact sums
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/interruption.hpp"
#include "index/leaf_table.hpp"

namespace hdicore {

// What leaves amount to: their means, each times its share of a tree, and what they weigh.
struct MeanSum {
    std::int64_t steps = 0;
    mass_t units = 0;

    MeanSum& operator+=(const MeanSum& other) noexcept {
        steps += other.steps;
        units += other.units;
        return *this;
    }
};

// The steps in which means of one output are counted, from its smallest atom. A step is a power of
// two, and at least the range of the atoms over 2^62 / n_trees, so that the sum of a row fits 62
// bits. Atoms are scaled by a power of two to at most 1: no difference of two overflows.
class MeanScale {
  public:
    // Of the least and the largest atom, which are finite.
    MeanScale(double least, double largest, std::size_t n_trees, int shift) noexcept;

    // Whole steps up to an atom, at most 2^62 / n_trees.
    std::int64_t steps(double atom) const noexcept {
        return static_cast<std::int64_t>((scaled(atom) - from_) * per_step_);
    }

    // The mean of a row; NaN without units.
    double mean(const MeanSum& sum) const noexcept;

  private:
    // Two factors, as one could overflow.
    double scaled(double atom) const noexcept { return atom * scale_ * scale_again_; }

    double least_;
    double largest_;
    int shift_;
    int exponent_;
    double scale_;
    double scale_again_;
    double from_;  // least_, scaled
    double step_;  // both are powers of two
    double per_step_;
};

// The scale of all atoms of an output.
MeanScale mean_scale(const LeafTable& table, std::size_t output) noexcept;

// Sums steps of entries of one leaf, times their units, exactly: as the sums of three parts of
// steps, of which each is below 2^62.
class MomentSum {
  public:
    void add(mass_t units, std::int64_t steps) noexcept {
        parts_[0] += units * (steps & part_mask);
        parts_[1] += units * (steps >> part_bits & part_mask);
        parts_[2] += units * (steps >> 2 * part_bits);
        units_ += units;
    }

    // The sum over 2^shift, without its fraction, and all units.
    MeanSum over_tree(int shift) const noexcept {
        const std::int64_t middle = parts_[1] + (parts_[0] >> part_bits);
        const std::int64_t high = parts_[2] + (middle >> part_bits);
        return {(high << (2 * part_bits - shift)) + ((middle & part_mask) >> (shift - part_bits)),
                units_};
    }

  private:
    static constexpr int part_bits = 22;
    static constexpr std::int64_t part_mask = (std::int64_t{1} << part_bits) - 1;

    std::int64_t parts_[3] = {};
    mass_t units_ = 0;
};

// What a leaf adds to the mean of a row; no units if no row lies in it.
MeanSum mean_of_leaf(const LeafTable& table, const MeanScale& scale, std::size_t output,
                     std::size_t tree, leaf_t leaf) noexcept;

// That of all leaves.
class LeafMeans {
  public:
    // Of leaves that were checked, or are known to be proper. O(n_entries) over n_threads threads.
    LeafMeans(const LeafTable& table, unsigned n_threads, Interruption& interruption);

    // (n_leaves of the tree,) of which none holds a row where it is -1, and so number no_leaf.
    const std::int64_t* steps(const LeafTable& table, std::size_t output,
                              std::size_t tree) const noexcept {
        return steps_.data() + first(table, output, tree);
    }
    // (n_leaves of the tree,) and 0 as number no_leaf, if leaves are pooled; others have 2^shift.
    const mass_t* units(const LeafTable& table, std::size_t output,
                        std::size_t tree) const noexcept {
        return units_.data() + first(table, output, tree);
    }
    std::size_t nbytes() const noexcept { return (steps_.size() + units_.size()) * 8; }

  private:
    // One place before the leaves of each tree is for no_leaf.
    static std::size_t first(const LeafTable& table, std::size_t output,
                             std::size_t tree) noexcept {
        return output * (table.n_leaves() + table.n_trees()) +
               static_cast<std::size_t>(table.arrays().leaf_offsets[tree]) + tree + 1;
    }

    std::vector<std::int64_t> steps_;
    std::vector<mass_t> units_;
};

// The means of leaves of an index: made when an eighth of the leaves was asked for, as until
// then it takes less to find each alone. Safe to share between threads.
class LeafMeansOnDemand {
  public:
    // For a query of so many rows; null if it should find its own.
    const LeafMeans* for_rows(const LeafTable& table, std::size_t n_rows, unsigned n_threads,
                              Interruption& interruption);

    std::size_t nbytes() const noexcept {
        const LeafMeans* means = known_.load(std::memory_order_acquire);
        return means == nullptr ? 0 : means->nbytes();
    }

  private:
    std::atomic<bool> is_made_{false};  // or was
    std::unique_ptr<const LeafMeans> means_;
    std::atomic<const LeafMeans*> known_{nullptr};  // means_, once it is there
    std::atomic<std::size_t> n_rows_{0};
};

}  // namespace hdicore
