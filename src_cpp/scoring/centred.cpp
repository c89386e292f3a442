// scoring/centred.cpp: merges the leaves of a training row, and corrects each atom for the row
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/centred.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "base/prefetch.hpp"
#include "kernels/kernels.hpp"
#include "merge/accumulator.hpp"
#include "merge/leave_one_out.hpp"

namespace hdicore {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// What is read of each atom, side by side.
struct Atom {
    double y;
    double centre;
    double offset;
    double n_oob;
};

// The training rows as atoms of the index.
struct Atoms {
    explicit Atoms(const CentredRows& rows)
        : facts(rows.rows_of_atoms.size()), of_rows(rows.rows_of_atoms.size()) {
        for (std::size_t k = 0; k < facts.size(); ++k) {
            const std::uint32_t j = rows.rows_of_atoms[k];
            const double offset = rows.offsets.empty() ? 0 : rows.offsets[j];
            facts[k] = {rows.y[j], rows.centres[j], offset, rows.n_oob[j]};
            of_rows[j] = static_cast<rank_t>(k);
        }
    }

    std::vector<Atom> facts;      // (n_rows,)
    std::vector<rank_t> of_rows;  // (n_rows,)
};

using Weighted = std::pair<double, mass_t>;  // an atom's value and mass

// Sorts atoms by value: in O(n) unless most lie in a small part of their range. Scratch memory of
// one thread.
class AtomSort {
  public:
    explicit AtomSort(std::size_t max_atoms) {
        begins_.reserve(max_atoms + 1);
        sorted_.reserve(max_atoms);
    }

    std::span<const Weighted> sort(std::span<const Weighted> atoms) noexcept {
        const auto [least, most] = std::ranges::minmax(atoms, {}, &Weighted::first);
        const double range = most.first - least.first;
        const double scale = static_cast<double>(atoms.size() - 1) / range;
        sorted_.resize(atoms.size());
        if (!std::isfinite(range) || !std::isfinite(scale)) {
            std::ranges::copy(atoms, sorted_.begin());
            sort_run(0, atoms.size());
            return sorted_;
        }
        const auto bucket = [&, least = least.first](const Weighted& atom) {
            return static_cast<std::size_t>((atom.first - least) * scale);
        };
        begins_.assign(atoms.size() + 1, 0);
        for (const Weighted& atom : atoms) ++begins_[bucket(atom)];
        std::uint32_t end = 0;
        for (std::uint32_t& begin : begins_) begin = end += begin;
        for (const Weighted& atom : atoms) sorted_[--begins_[bucket(atom)]] = atom;
        for (std::size_t b = 0; b < atoms.size(); ++b) sort_run(begins_[b], begins_[b + 1]);
        return sorted_;
    }

  private:
    void sort_run(std::size_t begin, std::size_t end) noexcept {
        if (end - begin < 2) return;
        std::ranges::sort(std::span(sorted_).subspan(begin, end - begin), {}, &Weighted::first);
    }

    std::vector<std::uint32_t> begins_;
    std::vector<Weighted> sorted_;
};

// Scratch memory of one thread.
class CentredWorker {
  public:
    CentredWorker(const CentredRows& rows, const Atoms& atoms)
        : rows_(rows),
          all_(atoms),
          accumulator_(rows.index, default_kernels()),
          leave_one_out_(rows.index),
          own_weight_(atoms.facts.size(), 0),
          sort_(rows.index.max_atoms()) {
        slices_.reserve(rows.index.n_trees());
        drew_.reserve(rows.index.n_trees());
        shares_.reserve(rows.index.n_trees());
        atoms_.reserve(rows.index.max_atoms());
        values_.reserve(rows.index.max_atoms());
        cumulative_.reserve(rows.index.max_atoms() + 1);
    }

    // Asks for where the leaves of a row lie.
    void prefetch(const CentredRequest& request, std::size_t at) const noexcept {
        for (std::size_t t = 0; t < rows_.index.n_trees(); ++t) {
            const leaf_t leaf = request.leaves(at, t);
            prefetch_line(rows_.index.leaf_begin(0, t) + leaf);
            if (request.counts(at, t) != 0) {
                prefetch_line(&rows_.leaf_weight[leaf_number(t, leaf)]);
            }
        }
    }

    void evaluate(const CentredRequest& request, std::size_t at) noexcept {
        const std::uint32_t row = request.rows[at];
        const Atom& own = all_.facts[all_.of_rows[row]];
        find_slices(request, at);
        const Pmf others =
            rows_.index.row_weights()
                ? leave_one_out_.merge(accumulator_, 0, slices_, row)
                : leave_one_out_.merge_equal(accumulator_, 0, slices_, all_.of_rows[row]);
        for (std::size_t f = 0; f < request.families.size(); ++f) {
            const bool is_raw = request.families[f] == Family::raw;
            if (is_raw) {
                keep_targets(others);
            } else {
                std::visit([&](const auto& ranks) { find_own_weight(ranks); },
                           rows_.index.arrays().ranks);
                centre(others, row);
            }
            const Pmf pmf(values_, cumulative_, others.n_trees, others.shift);
            read(pmf, is_raw ? 0 : stacked(own.centre, own.offset), request, f, at);
        }
    }

  private:
    // A leaf in a tree that drew the row, and which rows that tree drew.
    struct Drawn {
        EntrySlice slice;
        const std::uint8_t* drawn;
    };

    static void read(const Pmf& pmf, double centre, const CentredRequest& request,
                     std::size_t family, std::size_t at) noexcept {
        const std::size_t n_levels = request.coverages.size();
        const std::span<double> ends = request.results.row(family * request.rows.size() + at);
        for (std::size_t l = 0; l < n_levels; ++l) {
            const Interval found = pmf.size() == 0
                                       ? Interval{nan, nan}
                                       : interval(pmf, request.coverages[l], request.kinds[l]);
            ends[l] = centre + found.lower;
            ends[n_levels + l] = centre + found.upper;
        }
    }

    // Finds the leaves in trees that did not draw the row, and those in trees that did, with the
    // weight of the row's target in their means. Asks for what will be read.
    void find_slices(const CentredRequest& request, std::size_t at) noexcept {
        const std::uint32_t row = request.rows[at];
        const double weight = rows_.draw_weight.empty() ? 1 : rows_.draw_weight[row];
        slices_.clear();
        drew_.clear();
        shares_.clear();
        std::visit(
            [&](const auto& ranks) {
                for (std::size_t t = 0; t < rows_.index.n_trees(); ++t) {
                    const leaf_t leaf = request.leaves(at, t);
                    const EntrySlice slice = rows_.index.entries(0, t, leaf);
                    if (slice.n == 0) continue;
                    prefetch_line(ranks.data() + slice.begin);
                    const std::int32_t count = request.counts(at, t);
                    if (count == 0) {
                        slices_.push_back(slice);
                        continue;
                    }
                    drew_.push_back({slice, rows_.drawn.row(t).data()});
                    shares_.push_back(count * weight / rows_.leaf_weight[leaf_number(t, leaf)]);
                }
            },
            rows_.index.arrays().ranks);
    }

    std::size_t leaf_number(std::size_t tree, leaf_t leaf) const noexcept {
        return static_cast<std::size_t>(rows_.index.arrays().leaf_offsets[tree]) +
               static_cast<std::size_t>(leaf);
    }

    // Finds the weight of the row's target in the centres of the rows that share leaves with it in
    // trees that drew it and not them. Whether a tree drew a row is as good as random, so that
    // nothing branches on it.
    template <class Ranks>
    void find_own_weight(const Ranks& ranks) noexcept {
        for (std::size_t k = 0; k < drew_.size(); ++k) {
            const auto& [slice, drawn] = drew_[k];
            const double shares[] = {shares_[k], 0};
            for (std::size_t e = slice.begin; e < slice.begin + slice.n; ++e) {
                const rank_t other = ranks[e];
                own_weight_[other] += shares[drawn[other / 8] >> other % 8 & 1];
            }
        }
    }

    template <class Ranks>
    void forget_own_weight(const Ranks& ranks) noexcept {
        for (const auto& [slice, drawn] : drew_) {
            for (std::size_t e = slice.begin; e < slice.begin + slice.n; ++e) {
                own_weight_[ranks[e]] = 0;
            }
        }
    }

    double stacked(double centre, double offset) const noexcept {
        return rows_.scale * centre + offset;
    }

    void clear_values() noexcept {
        values_.clear();
        cumulative_.assign(1, 0);
    }

    // Behind atoms that are not larger.
    void append(double value, mass_t mass) noexcept {
        if (values_.empty() || values_.back() != value) {
            values_.push_back(value);
            cumulative_.push_back(cumulative_.back());
        }
        cumulative_.back() += mass;
    }

    // Fills values_ and cumulative_ with the targets of the other rows.
    void keep_targets(const Pmf& others) noexcept {
        clear_values();
        const std::span<const rank_t> ranks = accumulator_.ranks();
        for (std::size_t k = 0; k < ranks.size(); ++k) {
            append(all_.facts[ranks[k]].y + 0.0, others.cumulative[k + 1] - others.cumulative[k]);
        }
    }

    // Fills them with the residuals of the other rows.
    void centre(const Pmf& others, std::uint32_t row) noexcept {
        atoms_.clear();
        const std::span<const rank_t> ranks = accumulator_.ranks();
        for (std::size_t k = 0; k < ranks.size(); ++k) {
            const Atom& j = all_.facts[ranks[k]];
            const double own = own_weight_[ranks[k]] / j.n_oob;
            const double centre = (j.centre - own * rows_.y[row]) / std::max(1 - own, min_rest);
            // + 0.0 makes one value of -0.0 and 0.0.
            atoms_.emplace_back(j.y - stacked(centre, j.offset) + 0.0,
                                others.cumulative[k + 1] - others.cumulative[k]);
        }
        std::visit([&](const auto& of_entries) { forget_own_weight(of_entries); },
                   rows_.index.arrays().ranks);
        clear_values();
        if (atoms_.empty()) return;
        for (const auto& [value, mass] : sort_.sort(atoms_)) append(value, mass);
    }

    const CentredRows& rows_;
    const Atoms& all_;
    Accumulator accumulator_;
    LeaveOneOut leave_one_out_;
    std::vector<EntrySlice> slices_;
    std::vector<Drawn> drew_;
    std::vector<double> shares_;      // of the row's target in the means of these leaves
    std::vector<double> own_weight_;  // (n_rows,) of atoms, zero between rows
    std::vector<Weighted> atoms_;
    AtomSort sort_;
    std::vector<double> values_;
    std::vector<mass_t> cumulative_;
};

}  // namespace

void centred_oob_intervals(const CentredRows& rows, const CentredRequest& request,
                           unsigned n_threads, Interruption& interruption) {
    if (!rows.index.row_weights() && !rows.index.arrays().uniform()) {
        throw std::invalid_argument(
            "index must be built with keep_row_weights, or of rows that weigh alike");
    }
    const Atoms atoms(rows);
    // Rows that share a leaf of one tree share many in the others.
    std::vector<std::uint32_t> order(request.rows.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t at) { return request.leaves(at, 0); });
    constexpr std::size_t at_once = 32;
    const auto make_worker = [&]() -> Worker {
        const auto worker = std::make_shared<CentredWorker>(rows, atoms);
        return [&, worker](std::size_t block) {
            const std::size_t end = std::min(request.rows.size(), (block + 1) * at_once);
            for (std::size_t i = block * at_once; i < end; ++i) {
                interruption.check();
                if (i + 1 < end) worker->prefetch(request, order[i + 1]);
                worker->evaluate(request, order[i]);
            }
        };
    };
    parallel_for((request.rows.size() + at_once - 1) / at_once, n_threads, make_worker,
                 interruption);
}

}  // namespace hdicore
