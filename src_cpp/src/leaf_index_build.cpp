// leaf_index_build.cpp: groups training rows by leaf and shares each leaf out among its targets
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "hdicore/leaf_index.hpp"
#include "hdicore/parallel.hpp"

namespace hdicore {
namespace {

constexpr count_t largest_total = count_t{1} << 52;

[[noreturn]] void refuse(const std::string& why) {
    throw std::invalid_argument(why);
}

// Offsets of the leaves of each tree, after checking every leaf id and count.
std::vector<offset_t> checked_leaf_offsets(const TrainingRows& rows) {
    const std::size_t n = rows.n_rows;
    const std::size_t m = rows.n_trees;
    if (n < 1) refuse("y must hold at least one training row");
    if (n > std::numeric_limits<rank_t>::max()) refuse("y must hold fewer than 2**32 rows");
    if (rows.n_outputs < 1) refuse("y must hold at least one output");
    if (!rows.n_leaves.empty() && rows.n_leaves.size() != m) {
        refuse("n_leaves must give one number for each of " + std::to_string(m) + " trees, got " +
               std::to_string(rows.n_leaves.size()));
    }
    std::vector<std::int64_t> sizes(m, 0);
    std::vector<count_t> totals(m, 0);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t t = 0; t < m; ++t) {
            const leaf_t leaf = rows.leaves[i * m + t];
            if (leaf < 0) {
                refuse("leaves[" + std::to_string(i) + ", " + std::to_string(t) +
                       "] must not be negative, got " + std::to_string(leaf));
            }
            sizes[t] = std::max<std::int64_t>(sizes[t], std::int64_t{leaf} + 1);
            if (rows.counts == nullptr) continue;
            const std::int32_t count = rows.counts[i * m + t];
            if (count < 0) {
                refuse("counts[" + std::to_string(i) + ", " + std::to_string(t) +
                       "] must not be negative, got " + std::to_string(count));
            }
            totals[t] += static_cast<count_t>(count);
        }
    }
    std::vector<offset_t> offsets(m + 1, 0);
    for (std::size_t t = 0; t < m; ++t) {
        if (totals[t] > largest_total) refuse("counts of one tree must not exceed 2**52 in all");
        if (!rows.n_leaves.empty()) {
            if (sizes[t] > rows.n_leaves[t]) {
                refuse("leaves names leaf " + std::to_string(sizes[t] - 1) + " of tree " +
                       std::to_string(t) + ", which has " + std::to_string(rows.n_leaves[t]));
            }
            sizes[t] = rows.n_leaves[t];
        }
        if (sizes[t] > most_leaves) {
            refuse("leaves of tree " + std::to_string(t) +
                   " must be small numbers below 2**28, got " + std::to_string(sizes[t] - 1));
        }
        offsets[t + 1] = offsets[t] + sizes[t];
    }
    return offsets;
}

// The rows of one output in ascending order of y, and the rank of each.
struct Order {
    std::vector<std::uint32_t> rows;  // (n_rows,)
    std::vector<rank_t> ranks;        // (n_rows,) rank of rows[p]
    std::vector<double> atoms;        // (n_atoms,)
};

Order order_targets(const TrainingRows& in, std::size_t output) {
    const auto y = [&](std::uint32_t row) { return in.y[row * in.n_outputs + output]; };
    Order order;
    order.rows.resize(in.n_rows);
    std::iota(order.rows.begin(), order.rows.end(), 0u);
    for (const std::uint32_t row : order.rows) {
        if (!std::isfinite(y(row))) refuse("y[" + std::to_string(row) + "] is not finite");
    }
    std::stable_sort(order.rows.begin(), order.rows.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return y(a) < y(b); });
    order.ranks.reserve(in.n_rows);
    for (const std::uint32_t row : order.rows) {
        // + 0.0 makes one atom of -0.0 and 0.0 whichever comes first.
        if (order.atoms.empty() || order.atoms.back() != y(row))
            order.atoms.push_back(y(row) + 0.0);
        order.ranks.push_back(static_cast<rank_t>(order.atoms.size() - 1));
    }
    return order;
}

struct Survey {
    count_t n_counted = 0;     // rows, as often as they count
    count_t n_distinct = 0;    // pairs of a leaf and a target in it, over all outputs
    count_t largest_leaf = 0;  // rows in one leaf, as often as they count
};

// Groups the rows of one tree by leaf. Scratch memory, reused from tree to tree.
class TreeEntries {
  public:
    std::vector<std::uint32_t> leaf_begin;  // (n_leaves + 1,)
    std::vector<rank_t> ranks;              // (n_entries,)
    std::vector<mass_t> units;              // (n_entries,)
    std::vector<count_t> weights;           // (n_entries,)

    void group(const TrainingRows& in, std::size_t tree, std::size_t n_leaves, const Order& order,
               std::span<const count_t> row_weights, int shift) {
        collect_column(in, tree, row_weights);
        collect_leaves(in.n_rows, n_leaves, order);
        share_units(n_leaves, shift);
    }

    // Groups rows that weigh alike: each stands as often as it counts, so nothing is merged or
    // shared out. Writes the ranks to `out`.
    template <class Rank>
    void place(const TrainingRows& in, std::size_t tree, std::size_t n_leaves, const Order& order,
               Rank* out) {
        collect_column(in, tree, {});
        leaf_begin.assign(n_leaves + 1, 0);
        for (std::size_t i = 0; i < in.n_rows; ++i) {
            leaf_begin[static_cast<std::size_t>(leaf_[i]) + 1] +=
                static_cast<std::uint32_t>(weight_[i]);
        }
        std::partial_sum(leaf_begin.begin(), leaf_begin.end(), leaf_begin.begin());
        end_.assign(leaf_begin.begin(), leaf_begin.end() - 1);
        for (std::size_t p = 0; p < in.n_rows; ++p) {
            const std::uint32_t row = order.rows[p];
            std::uint32_t& end = end_[static_cast<std::size_t>(leaf_[row])];
            for (count_t k = 0; k < weight_[row]; ++k) {
                out[end++] = static_cast<Rank>(order.ranks[p]);
            }
        }
    }

    // What decides how the entries of one tree are stored.
    Survey survey(const TrainingRows& in, std::size_t tree, std::size_t n_leaves,
                  std::span<const Order> orders, std::span<const count_t> row_weights) {
        constexpr auto none = std::numeric_limits<rank_t>::max();
        collect_column(in, tree, {});
        for (std::size_t i = 0; i < row_weights.size(); ++i) {
            if (row_weights[i] == 0) weight_[i] = 0;
        }
        Survey found;
        rows_in_leaf_.assign(n_leaves, 0);
        for (std::size_t i = 0; i < in.n_rows; ++i) {
            rows_in_leaf_[static_cast<std::size_t>(leaf_[i])] += weight_[i];
            found.n_counted += weight_[i];
        }
        for (const count_t n : rows_in_leaf_) found.largest_leaf = std::max(found.largest_leaf, n);
        for (const Order& order : orders) {
            last_.assign(n_leaves, none);
            for (std::size_t p = 0; p < in.n_rows; ++p) {
                if (weight_[order.rows[p]] == 0) continue;
                rank_t& last = last_[static_cast<std::size_t>(leaf_[order.rows[p]])];
                found.n_distinct += last != order.ranks[p];
                last = order.ranks[p];
            }
        }
        return found;
    }

  private:
    void collect_column(const TrainingRows& in, std::size_t tree,
                        std::span<const count_t> row_weights) {
        leaf_.resize(in.n_rows);
        weight_.resize(in.n_rows);
        for (std::size_t i = 0; i < in.n_rows; ++i) {
            const std::size_t at = i * in.n_trees + tree;
            leaf_[i] = in.leaves[at];
            const auto count = in.counts == nullptr ? 1 : static_cast<count_t>(in.counts[at]);
            weight_[i] = count * (row_weights.empty() ? 1 : row_weights[i]);
        }
    }

    // Counting sort by leaf of the rows in order of y; equal targets in a leaf become one entry.
    void collect_leaves(std::size_t n_rows, std::size_t n_leaves, const Order& order) {
        constexpr auto none = std::numeric_limits<rank_t>::max();
        leaf_begin.assign(n_leaves + 1, 0);
        last_.assign(n_leaves, none);
        for (std::size_t p = 0; p < n_rows; ++p) {
            if (weight_[order.rows[p]] == 0) continue;
            const auto leaf = static_cast<std::size_t>(leaf_[order.rows[p]]);
            leaf_begin[leaf + 1] += last_[leaf] != order.ranks[p];
            last_[leaf] = order.ranks[p];
        }
        std::partial_sum(leaf_begin.begin(), leaf_begin.end(), leaf_begin.begin());

        ranks.assign(leaf_begin.back(), 0);
        weights.assign(leaf_begin.back(), 0);
        end_.assign(leaf_begin.begin(), leaf_begin.end() - 1);
        for (std::size_t p = 0; p < n_rows; ++p) {
            const count_t weight = weight_[order.rows[p]];
            if (weight == 0) continue;
            const auto leaf = static_cast<std::size_t>(leaf_[order.rows[p]]);
            const rank_t rank = order.ranks[p];
            std::uint32_t& end = end_[leaf];
            if (end == leaf_begin[leaf] || ranks[end - 1] != rank) ranks[end++] = rank;
            weights[end - 1] += weight;
        }
    }

    // Weights to units; an entry too light for a single unit is dropped.
    void share_units(std::size_t n_leaves, int shift) {
        units.clear();
        std::uint32_t kept = 0;
        std::uint32_t begin = 0;
        for (std::size_t leaf = 0; leaf < n_leaves; ++leaf) {
            const std::uint32_t end = leaf_begin[leaf + 1];
            const count_t total =
                std::accumulate(weights.begin() + begin, weights.begin() + end, count_t{0});
            count_t before = 0;
            mass_t given = 0;
            for (std::uint32_t e = begin; e < end; ++e) {
                before += weights[e];
                const mass_t upto = share(before, total, shift);
                if (upto == given) continue;
                ranks[kept] = ranks[e];
                weights[kept] = weights[e];
                units.push_back(upto - given);
                given = upto;
                ++kept;
            }
            leaf_begin[leaf + 1] = kept;
            begin = end;
        }
        ranks.resize(kept);
        weights.resize(kept);
    }

    std::vector<leaf_t> leaf_;           // (n_rows,)
    std::vector<count_t> weight_;        // (n_rows,)
    std::vector<rank_t> last_;           // (n_leaves,)
    std::vector<std::uint32_t> end_;     // (n_leaves,)
    std::vector<count_t> rows_in_leaf_;  // (n_leaves,)
};

std::vector<count_t> checked_row_weights(const TrainingRows& rows) {
    if (rows.sample_weight == nullptr) return {};
    const std::span weights(rows.sample_weight, rows.n_rows);
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        if (!(std::isfinite(weights[i]) && weights[i] >= 0)) {
            refuse("sample_weight[" + std::to_string(i) +
                   "] must be finite and not negative, got " + std::to_string(weights[i]));
        }
    }
    std::int32_t copies = 1;
    if (rows.counts != nullptr) {
        copies = *std::max_element(rows.counts, rows.counts + rows.n_rows * rows.n_trees);
    }
    return whole_weights(weights, static_cast<std::size_t>(std::max(copies, 1)));
}

// A bit for each leaf: whether a row lies in it.
std::vector<std::uint64_t> seen_leaves(const TrainingRows& rows,
                                       std::span<const offset_t> leaf_offsets) {
    std::vector<std::uint64_t> seen((static_cast<std::size_t>(leaf_offsets.back()) + 63) / 64, 0);
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        for (std::size_t t = 0; t < rows.n_trees; ++t) {
            const auto bit =
                static_cast<std::size_t>(leaf_offsets[t] + rows.leaves[i * rows.n_trees + t]);
            seen[bit / 64] |= std::uint64_t{1} << bit % 64;
        }
    }
    return seen;
}

// What decides how entries are stored, over all trees; n_counted of each tree on its own.
Survey survey_all(const TrainingRows& rows, std::span<const offset_t> leaf_offsets,
                  std::span<const Order> orders, std::span<const count_t> row_weights,
                  unsigned n_threads, std::vector<count_t>& n_counted) {
    std::vector<Survey> found(rows.n_trees);
    parallel_for(rows.n_trees, n_threads, [&]() -> Worker {
        return [&, scratch = TreeEntries()](std::size_t t) mutable {
            const auto n_leaves = static_cast<std::size_t>(leaf_offsets[t + 1] - leaf_offsets[t]);
            found[t] = scratch.survey(rows, t, n_leaves, orders, row_weights);
        };
    });
    Survey all;
    for (const Survey& tree : found) {
        n_counted.push_back(tree.n_counted);
        all.n_counted += tree.n_counted;
        all.n_distinct += tree.n_distinct;
        all.largest_leaf = std::max(all.largest_leaf, tree.largest_leaf);
    }
    return all;
}

}  // namespace

LeafIndex::LeafIndex(const TrainingRows& rows, bool keep_row_weights, unsigned n_threads) {
    check_number_of_trees(rows.n_trees);
    const std::size_t n_trees = rows.n_trees;
    const std::size_t n_outputs = rows.n_outputs;
    std::vector<offset_t> leaf_offsets = checked_leaf_offsets(rows);
    const auto n_leaves = static_cast<std::size_t>(leaf_offsets.back());
    std::vector<count_t> row_weights = checked_row_weights(rows);

    std::vector<Order> orders(n_outputs);
    parallel_for(n_outputs, n_threads, [&]() -> Worker {
        return [&](std::size_t o) { orders[o] = order_targets(rows, o); };
    });
    std::vector<offset_t> atom_offsets{0};
    std::vector<double> atoms;
    std::size_t most_atoms = 0;
    for (const Order& order : orders) {
        atoms.insert(atoms.end(), order.atoms.begin(), order.atoms.end());
        atom_offsets.push_back(static_cast<offset_t>(atoms.size()));
        most_atoms = std::max(most_atoms, order.atoms.size());
    }

    std::vector<count_t> n_counted;
    const Survey survey = survey_all(rows, leaf_offsets, orders, row_weights, n_threads, n_counted);
    const count_t widen_from = ((count_t{1} << 26) + n_trees - 1) / n_trees;
    const bool wide = survey.largest_leaf >= widen_from;
    const int shift = wide ? wide_shift : narrow_shift;
    // Where many rows of a leaf share a target, merging them saves more than units cost.
    const bool alike = row_weights.empty() && !keep_row_weights && !wide &&
                       survey.largest_leaf <= most_alike &&
                       survey.n_counted * n_outputs <= 2 * survey.n_distinct;

    const auto for_each_tree = [&](const auto& use) {
        parallel_for(n_outputs * n_trees, n_threads, [&]() -> Worker {
            return [&, entries = TreeEntries()](std::size_t block) mutable {
                const std::size_t t = block % n_trees;
                use(block, t, static_cast<std::size_t>(leaf_offsets[t + 1] - leaf_offsets[t]),
                    orders[block / n_trees], entries);
            };
        });
    };

    std::vector<offset_t> tree_begin(n_outputs * n_trees + 1, 0);
    if (alike) {
        for (std::size_t block = 0; block < n_outputs * n_trees; ++block) {
            tree_begin[block + 1] = static_cast<offset_t>(n_counted[block % n_trees]);
        }
    } else {
        // Grouping twice costs less than holding every tree's entries a second time.
        for_each_tree([&](std::size_t block, std::size_t t, std::size_t n, const Order& order,
                          TreeEntries& entries) {
            entries.group(rows, t, n, order, row_weights, shift);
            tree_begin[block + 1] = static_cast<offset_t>(entries.ranks.size());
        });
    }
    std::partial_sum(tree_begin.begin(), tree_begin.end(), tree_begin.begin());

    const auto n_entries = static_cast<std::size_t>(tree_begin.back());
    const bool narrow_ranks = most_atoms <= std::size_t{1} << 16;
    std::vector<std::uint32_t> leaf_begin(n_outputs * (n_leaves + n_trees));
    std::vector<std::uint16_t> short_ranks(narrow_ranks ? n_entries : 0);
    std::vector<rank_t> ranks(narrow_ranks ? 0 : n_entries);
    std::vector<std::uint32_t> narrow_units(wide || alike ? 0 : n_entries);
    std::vector<std::uint64_t> wide_units(wide ? n_entries : 0);
    std::vector<count_t> entry_weights(keep_row_weights ? n_entries : 0);
    for_each_tree([&](std::size_t block, std::size_t t, std::size_t n, const Order& order,
                      TreeEntries& entries) {
        const offset_t at = tree_begin[block];
        if (alike) {
            narrow_ranks ? entries.place(rows, t, n, order, short_ranks.data() + at)
                         : entries.place(rows, t, n, order, ranks.data() + at);
        } else {
            entries.group(rows, t, n, order, row_weights, shift);
            narrow_ranks
                ? void(std::copy(entries.ranks.begin(), entries.ranks.end(),
                                 short_ranks.begin() + at))
                : void(std::copy(entries.ranks.begin(), entries.ranks.end(), ranks.begin() + at));
            wide ? void(std::copy(entries.units.begin(), entries.units.end(),
                                  wide_units.begin() + at))
                 : void(std::copy(entries.units.begin(), entries.units.end(),
                                  narrow_units.begin() + at));
        }
        const std::size_t slot =
            block / n_trees * (n_leaves + n_trees) + static_cast<std::size_t>(leaf_offsets[t]) + t;
        std::copy(entries.leaf_begin.begin(), entries.leaf_begin.end(),
                  leaf_begin.begin() + static_cast<offset_t>(slot));
        if (keep_row_weights) {
            std::copy(entries.weights.begin(), entries.weights.end(), entry_weights.begin() + at);
        }
    });

    if (keep_row_weights) {
        std::vector<rank_t> row_ranks(rows.n_rows * n_outputs);
        for (std::size_t o = 0; o < n_outputs; ++o) {
            for (std::size_t p = 0; p < rows.n_rows; ++p) {
                row_ranks[orders[o].rows[p] * n_outputs + o] = orders[o].ranks[p];
            }
        }
        if (row_weights.empty()) row_weights.assign(rows.n_rows, 1);
        row_weights_ = RowWeights{Array(std::move(entry_weights)), Array(std::move(row_ranks)),
                                  Array(std::move(row_weights))};
    }
    if (rows.only_seen) arrays_.seen = Array(seen_leaves(rows, leaf_offsets));
    arrays_.leaf_offsets = Array(std::move(leaf_offsets));
    arrays_.atom_offsets = Array(std::move(atom_offsets));
    arrays_.atoms = Array(std::move(atoms));
    arrays_.tree_begin = Array(std::move(tree_begin));
    arrays_.leaf_begin = Array(std::move(leaf_begin));
    if (narrow_ranks) arrays_.ranks = Array(std::move(short_ranks));
    if (!narrow_ranks) arrays_.ranks = Array(std::move(ranks));
    if (wide) arrays_.units = Array(std::move(wide_units));
    if (!wide && !alike) arrays_.units = Array(std::move(narrow_units));
    note_leaf_sizes();
    count_buckets(n_threads);
}

}  // namespace hdicore
