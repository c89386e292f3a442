// index/leaf_index.hpp: leaves -> weighted ranks of y; which training targets lie in each leaf
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/interruption.hpp"
#include "base/lazily_checked.hpp"
#include "base/types.hpp"
#include "index/derived_tables.hpp"
#include "index/leaf_means.hpp"
#include "index/leaf_table.hpp"
#include "index/training_rows.hpp"

namespace hdicore {

// Keeps one piece of memory between calls. A call that finds none, as another one has it, makes its
// own. Safe to share between threads.
class ScratchCache {
  public:
    // The memory, or null.
    std::shared_ptr<void> take() noexcept {
        const std::lock_guard lock(mutex_);
        return std::exchange(memory_, nullptr);
    }
    // Keeps this memory in place of what is there.
    void put(std::shared_ptr<void> memory) noexcept {
        const std::lock_guard lock(mutex_);
        memory_.swap(memory);
    }

  private:
    std::mutex mutex_;
    std::shared_ptr<void> memory_;
};

class LeafIndexBuilder;
struct BuiltArrays;

// The arrays, checked or to be checked, with what follows from them. Immutable after construction:
// safe to share between threads.
class LeafIndex : public LeafTable {
  public:
    // O(n_outputs * n_rows * (log n_rows + n_trees)) over n_threads threads. Rows that count or
    // weigh nothing leave no entry. Throws std::invalid_argument at input that is out of range.
    LeafIndex(const TrainingRows& rows, bool keep_row_weights, unsigned n_threads,
              Interruption& interruption = Interruption::never());

    // From a builder that wants no more trees.
    explicit LeafIndex(LeafIndexBuilder builder);

    // From arrays that are known to be those of an index.
    LeafIndex(BuiltArrays built, unsigned n_threads, Interruption& interruption);

    // The arrays are not copied. Throws std::invalid_argument unless they are those of an index, in
    // errors that begin with `source`, if it is not empty. If they are checked lazily, these are
    // sizes, offsets and atoms, O(n_outputs * n_trees + n_atoms), and each query checks the leaves
    // that it reads; there are no bucket counts then, which alter no result.
    explicit LeafIndex(LeafIndexArrays arrays, std::string source = {}, Checks checks = Checks::now,
                       unsigned n_threads = 1, Interruption& interruption = Interruption::never());

    bool is_validated() const noexcept { return checks_ == Checks::now; }
    // The same index, checked whole.
    LeafIndex validated(unsigned n_threads, Interruption& interruption) const;
    // Throws std::invalid_argument unless the entries of a leaf are those of an index.
    void check_leaf(std::size_t output, std::size_t tree, leaf_t leaf) const;

    const DerivedTables& tables() const noexcept { return tables_; }
    const std::optional<RowWeights>& row_weights() const noexcept { return row_weights_; }
    // Means of leaves for a query of so many rows; null if it should find those it reads.
    const LeafMeans* means(std::size_t n_rows, unsigned n_threads,
                           Interruption& interruption) const {
        if (!is_validated()) return nullptr;
        return means_->for_rows(*this, n_rows, n_threads, interruption);
    }
    std::size_t nbytes() const noexcept {
        return LeafTable::nbytes() + tables_.nbytes() + means_->nbytes();
    }
    // Memory for merging, which has the size of the index.
    ScratchCache& scratch_cache() const noexcept { return *scratch_cache_; }

  private:
    DerivedTables tables_;
    std::optional<RowWeights> row_weights_;
    Checks checks_ = Checks::now;
    std::string source_;
    std::shared_ptr<LeafMeansOnDemand> means_ = std::make_shared<LeafMeansOnDemand>();
    std::shared_ptr<ScratchCache> scratch_cache_ = std::make_shared<ScratchCache>();
};

}  // namespace hdicore
