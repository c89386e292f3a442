// scoring/out_of_bag_intervals.cpp: merges leaves of a training row, and corrects atoms for the row
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "base/refusal.hpp"
#include "base/types.hpp"
#include "kernels/kernels.hpp"
#include "merge/accumulator.hpp"
#include "merge/leave_one_out.hpp"
#include "scoring/out_of_bag.hpp"

namespace hdicore {
namespace {

constexpr std::size_t rows_at_once = 32;

// What is read of each atom, side by side.
struct Atom {
    double y;
    double centre;
    double offset;
    double n_oob;
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

}  // namespace

// The training rows as atoms of the index.
struct OutOfBagScorer::Atoms {
    Atoms(const OutOfBagScorer& rows, std::span<const double> offsets)
        : facts(rows.n_rows()), of_rows(rows.n_rows()) {
        for (std::size_t k = 0; k < facts.size(); ++k) {
            const std::uint32_t j = rows.rows_of_atoms_[k];
            const double offset = offsets.empty() ? 0 : offsets[j];
            facts[k] = {rows.y_[j], rows.means_.centres[j], offset, rows.means_.n_oob[j]};
            of_rows[j] = static_cast<rank_t>(k);
        }
    }

    std::vector<Atom> facts;      // (n_rows,)
    std::vector<rank_t> of_rows;  // (n_rows,)
};

// Scratch memory of one thread.
class OutOfBagScorer::IntervalWorker {
  public:
    IntervalWorker(const OutOfBagScorer& rows, const Atoms& atoms, const OutOfBagRequest& request)
        : rows_(rows),
          index_(*rows.index_),
          all_(atoms),
          request_(request),
          leaves_(rows_at_once * index_.n_trees()),
          counts_(rows_at_once * index_.n_trees()),
          accumulator_(index_, default_kernels()),
          leave_one_out_(index_),
          own_weight_(atoms.facts.size(), 0),
          sort_(index_.max_atoms()) {
        slices_.reserve(index_.n_trees());
        drew_.reserve(index_.n_trees());
        shares_.reserve(index_.n_trees());
        atoms_.reserve(index_.max_atoms());
        values_.reserve(index_.max_atoms());
        cumulative_.reserve(index_.max_atoms() + 1);
    }

    // Evaluates the rows of the request that `places` names, at most rows_at_once.
    void evaluate(std::span<const std::uint32_t> places, Interruption& interruption) {
        std::visit([&](auto draws) { gather(draws, places); }, rows_.draws_);
        for (std::size_t k = 0; k < places.size(); ++k) {
            interruption.check();
            if (k + 1 < places.size()) prefetch(k + 1);
            evaluate(k, places[k]);
        }
    }

  private:
    // A leaf in a tree that drew the row, and which rows that tree drew.
    struct Drawn {
        EntrySlice slice;
        const std::uint8_t* drawn;
    };

    // Copies and checks what the caller's memory says of some rows.
    template <class Count>
    void gather(Matrix<const Count> draws, std::span<const std::uint32_t> places) {
        const std::size_t n_trees = index_.n_trees();
        for (std::size_t t = 0; t < n_trees; ++t) {
            for (std::size_t k = 0; k < places.size(); ++k) {
                const std::uint32_t row = request_.rows[places[k]];
                leaves_[k * n_trees + t] = static_cast<leaf_t>(rows_.checked_leaf(t, row));
                counts_[k * n_trees + t] = draws(t, row);
            }
        }
    }

    // Of row k of those gathered.
    std::span<const leaf_t> leaves(std::size_t k) const noexcept {
        return std::span(leaves_).subspan(k * index_.n_trees(), index_.n_trees());
    }
    std::span<const std::uint32_t> counts(std::size_t k) const noexcept {
        return std::span(counts_).subspan(k * index_.n_trees(), index_.n_trees());
    }
    const double& leaf_weight(std::size_t tree, leaf_t leaf) const noexcept {
        return rows_.means_.leaf_weight[rows_.leaf_number(tree, static_cast<std::size_t>(leaf))];
    }

    // Asks for where the leaves of a row lie.
    void prefetch(std::size_t k) const noexcept {
        for (std::size_t t = 0; t < index_.n_trees(); ++t) {
            const leaf_t leaf = leaves(k)[t];
            prefetch_line(index_.leaf_begin(0, t) + leaf);
            if (counts(k)[t] != 0) prefetch_line(&leaf_weight(t, leaf));
        }
    }

    // Evaluates row k of those gathered, number `at` of the request.
    void evaluate(std::size_t k, std::size_t at) noexcept {
        const std::uint32_t row = request_.rows[at];
        const Atom& own = all_.facts[all_.of_rows[row]];
        find_slices(k, row);
        const Pmf others =
            index_.row_weights()
                ? leave_one_out_.merge(accumulator_, 0, slices_, row)
                : leave_one_out_.merge_equal(accumulator_, 0, slices_, all_.of_rows[row]);
        for (std::size_t f = 0; f < request_.families.size(); ++f) {
            const bool is_raw = request_.families[f] == Family::raw;
            if (is_raw) {
                keep_targets(others);
            } else {
                std::visit([&](const auto& ranks) { find_own_weight(ranks); },
                           index_.arrays().ranks);
                centre(others, row);
            }
            const Pmf pmf(values_, cumulative_, others.n_trees, others.shift);
            read(pmf, is_raw ? 0 : stacked(own.centre, own.offset),
                 request_.results.row(f * request_.rows.size() + at));
        }
    }

    void read(const Pmf& pmf, double centre, std::span<double> ends) const noexcept {
        const std::size_t n_levels = request_.coverages.size();
        for (std::size_t l = 0; l < n_levels; ++l) {
            const Interval found = pmf.size() == 0
                                       ? Interval{nan, nan}
                                       : interval(pmf, request_.coverages[l], request_.kinds[l]);
            ends[l] = centre + found.lower;
            ends[n_levels + l] = centre + found.upper;
        }
    }

    // Finds the leaves in trees that did not draw the row, and those in trees that did, with the
    // weight of the row's target in their means. Asks for what will be read.
    void find_slices(std::size_t k, std::uint32_t row) noexcept {
        const double weight = rows_.draw_weight_.empty() ? 1 : rows_.draw_weight_[row];
        const std::size_t n_bytes = (rows_.n_rows() + 7) / 8;
        slices_.clear();
        drew_.clear();
        shares_.clear();
        std::visit(
            [&](const auto& ranks) {
                for (std::size_t t = 0; t < index_.n_trees(); ++t) {
                    const leaf_t leaf = leaves(k)[t];
                    const EntrySlice slice = index_.entries(0, t, leaf);
                    if (slice.n == 0) continue;
                    prefetch_line(ranks.data() + slice.begin);
                    const std::uint32_t count = counts(k)[t];
                    if (count == 0) {
                        slices_.push_back(slice);
                        continue;
                    }
                    drew_.push_back({slice, rows_.drawn_.data() + t * n_bytes});
                    // No more than 1, unless the caller has changed the counts.
                    const double of_leaf = leaf_weight(t, leaf);
                    shares_.push_back(of_leaf > 0 ? std::min(count * weight / of_leaf, 1.0) : 0);
                }
            },
            index_.arrays().ranks);
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
        // The centre of another atom may be infinite.
        return request_.scale == 0 ? offset : request_.scale * centre + offset;
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
            const double centre = (j.centre - own * rows_.y_[row]) / std::max(1 - own, min_rest);
            // + 0.0 makes one value of -0.0 and 0.0.
            atoms_.emplace_back(j.y - stacked(centre, j.offset) + 0.0,
                                others.cumulative[k + 1] - others.cumulative[k]);
        }
        std::visit([&](const auto& of_entries) { forget_own_weight(of_entries); },
                   index_.arrays().ranks);
        clear_values();
        if (atoms_.empty()) return;
        for (const auto& [value, mass] : sort_.sort(atoms_)) append(value, mass);
    }

    const OutOfBagScorer& rows_;
    const LeafIndex& index_;
    const Atoms& all_;
    const OutOfBagRequest& request_;
    std::vector<leaf_t> leaves_;         // (rows_at_once, n_trees)
    std::vector<std::uint32_t> counts_;  // (rows_at_once, n_trees)
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

void OutOfBagScorer::intervals(const OutOfBagRequest& request, unsigned n_threads,
                               Interruption& interruption) const {
    for (const std::uint32_t row : request.rows) {
        if (row < n_rows()) continue;
        refuse("rows must lie below " + std::to_string(n_rows()) + ", got " + std::to_string(row));
    }
    if (!has_raw() && std::ranges::count(request.families, Family::raw) > 0) {
        refuse(
            "family must be 'centred' for rows that do not weigh alike, or over 65,535 in a leaf");
    }
    const Atoms atoms(*this, request.offsets);
    // Rows that share a leaf of one tree share many in the others.
    std::vector<leaf_t> first_leaf;
    for (const std::uint32_t row : request.rows) first_leaf.push_back(leaves_(0, row));
    std::vector<std::uint32_t> order(request.rows.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t at) { return first_leaf[at]; });
    const auto make_worker = [&]() -> Worker {
        const auto worker = std::make_shared<IntervalWorker>(*this, atoms, request);
        return [&, worker](std::size_t block) {
            const std::size_t begin = block * rows_at_once;
            const std::size_t n = std::min(rows_at_once, order.size() - begin);
            worker->evaluate(std::span(order).subspan(begin, n), interruption);
        };
    };
    parallel_for((order.size() + rows_at_once - 1) / rows_at_once, n_threads, make_worker,
                 interruption);
}

}  // namespace hdicore
