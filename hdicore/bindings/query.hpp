// query.hpp: rows or leaves from Python, checked, and the calls of the engine with them
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "arrays.hpp"
#include "bound_classes.hpp"
#include "scoring/row_weights.hpp"
#include "scoring/scorer.hpp"
#include "scoring/tree_spread.hpp"

namespace hdicore::bindings {

inline const BoundIndex& index_of(const BoundIndex& self) {
    return self;
}
inline const BoundIndex& index_of(const BoundScorer& self) {
    return self.bound_index;
}

// Rows of a block of every query; 0: the engine's choice. Set by tests, since no result may depend
// on it.
inline std::atomic<std::size_t> block_rows{0};

// Rows of all queries together that are scored before a forest or an index of a file is checked
// whole; below 0: as many as read an eighth of its leaves. Set by tests, as no result may depend on
// it.
inline std::atomic<std::int64_t> unchecked_rows{-1};

// Asks Python for signals in long work without its lock.
template <class Value>
const Value& validated(const Engine<Value>& engine, unsigned n_threads = 1) {
    Interruption interruption(pending_signals());
    const py::gil_scoped_release no_gil;
    return engine->validated(n_threads, interruption);
}

template <class Value>
const Value& for_rows(const Engine<Value>& engine, std::size_t n_rows, unsigned n_threads) {
    const Value& current = engine->current();
    if (current.is_validated()) return current;
    const std::int64_t asked = unchecked_rows;
    const std::size_t limit =
        asked >= 0 ? static_cast<std::size_t>(asked) : current.n_leaves() / current.n_trees() / 8;
    Interruption interruption(pending_signals());
    const py::gil_scoped_release no_gil;
    return engine->for_rows(n_rows, limit, n_threads, interruption);
}

// What a query is asked for: rows or leaves, checked, with the memory they live in.
class Query {
  public:
    Query(const BoundScorer& self, const py::object& X, const py::object& leave_out,
          const py::object& n_threads)
        : Query(self.bound_index, leave_out, n_threads) {
        rows_name_ = "X";
        const RowMatrix rows = row_matrix(X, keep_);
        const Forest& forest = for_rows(self.forest_engine, rows.n_rows(), n_threads_);
        take(self.bound_index, std::make_unique<RoutedRows>(forest, rows));
    }

    Query(const BoundIndex& self, const py::object& leaves, const py::object& leave_out,
          const py::object& n_threads)
        : Query(self, leave_out, n_threads) {
        const auto ids = integers<leaf_t>(leaves, "leaves");
        check_ndim(ids, "leaves", 2);
        check_shape(ids, "leaves",
                    {ids.shape(0), static_cast<py::ssize_t>(self.current().n_trees())});
        rows_name_ = "leaves";
        keep_ = ids;
        take(self, std::make_unique<GivenLeaves>(self.current(), matrix_of(ids)));
    }

    // Shape of a result: rows, outputs unless y had one dimension, and what is asked of each.
    Shape shape(const Shape& rest) const {
        Shape full{static_cast<py::ssize_t>(source_->n_rows())};
        if (!scalar_output_) full.push_back(static_cast<py::ssize_t>(index_->n_outputs()));
        full.insert(full.end(), rest.begin(), rest.end());
        return full;
    }

    // The axes of an array behind those of rows and outputs.
    Shape rest_of(const py::array& array) const {
        return {array.shape() + shape({}).size(), array.shape() + array.ndim()};
    }

    std::size_t n_rows() const noexcept { return source_->n_rows(); }
    std::size_t n_atoms() const noexcept { return index_->max_atoms(); }

    // Points given for each row (and output), one or several.
    py::array_t<double> points(const py::object& object, const char* name,
                               std::size_t& n_points) const {
        auto array = reals(object, name);
        const Shape one = shape({});
        const auto extra = array.ndim() - static_cast<py::ssize_t>(one.size());
        n_points = 1;
        if (extra == 1) n_points = static_cast<std::size_t>(array.shape(array.ndim() - 1));
        check_shape(array, name, extra == 1 ? shape({static_cast<py::ssize_t>(n_points)}) : one);
        return array;
    }

    // A number for each leaf of the index. Scoring checks those that it reads.
    py::array_t<double> of_leaves(const py::object& object, const char* name) const {
        if (index_->n_outputs() != 1) {
            throw py::value_error(std::string(name) + " needs an index of one output");
        }
        auto array = reals(object, name);
        check_shape(array, name, {static_cast<py::ssize_t>(index_->n_leaves())});
        return array;
    }

    // An array to fill: the caller's, which must not be the memory of the rows, or a new one.
    template <class T = double>
    py::array_t<T> output(const py::object& out, const Shape& rest,
                          const char* name = "out") const {
        auto array = output_array<T>(out, shape(rest), name);
        check_apart(array, name);
        return array;
    }

    // Refuses an array to fill that is the memory of the rows.
    void check_apart(const py::array& filled, const char* name) const {
        check_disjoint(filled, name, keep_, rows_name_);
    }

    void score(const Request& request) {
        const py::gil_scoped_release no_gil;
        hdicore::score(*index_, *source_, left_out(), request, execution());
    }

    void calibrate(const Calibration& calibration, const CalibratedRequest& request) {
        const py::gil_scoped_release no_gil;
        calibrated_intervals(*index_, *source_, calibration, request, execution());
    }

    CsrMatrix<double> weights() {
        const py::gil_scoped_release no_gil;
        return atom_weights(*index_, *source_, left_out(), execution());
    }

    void find_spread(const SpreadRequest& request) {
        const py::gil_scoped_release no_gil;
        hdicore::find_spread(*index_, *source_, request, execution());
    }

    CsrMatrix<std::int64_t> proximities() {
        const py::gil_scoped_release no_gil;
        return hdicore::proximities(*index_, *source_, left_out(), execution());
    }

    py::array_t<std::int64_t> count_samples() {
        py::array_t<std::int64_t> result(static_cast<py::ssize_t>(source_->n_rows()));
        const std::span counts(result.mutable_data(), source_->n_rows());
        {
            const py::gil_scoped_release no_gil;
            hdicore::count_samples(*index_, *source_, execution(), counts);
        }
        return result;
    }

  private:
    Query(const BoundIndex& index, const py::object& leave_out, const py::object& n_threads)
        : scalar_output_(index.scalar_output), n_threads_(thread_count(n_threads)) {
        if (leave_out.is_none()) return;
        // A copy, as it must not change between its check and its use.
        const auto rows = integers<std::uint32_t>(leave_out, "leave_out");
        check_ndim(rows, "leave_out", 1);
        leave_out_.emplace(rows.data(), rows.data() + rows.size());
    }

    void take(const BoundIndex& index, std::unique_ptr<LeafSource> source) {
        source_ = std::move(source);
        index_ = &for_rows(index.engine, source_->n_rows(), n_threads_);
        check_leave_out();
    }

    void check_leave_out() const {
        if (leave_out_ && leave_out_->size() != source_->n_rows()) {
            throw py::value_error("leave_out must name one training row for each of " +
                                  std::to_string(source_->n_rows()) + " rows, got " +
                                  std::to_string(leave_out_->size()));
        }
    }

    std::span<const std::uint32_t> left_out() const {
        return leave_out_ ? std::span<const std::uint32_t>(*leave_out_)
                          : std::span<const std::uint32_t>();
    }
    Execution execution() {
        return {.n_threads = n_threads_, .block_rows = block_rows, .interruption = interruption_};
    }

    bool scalar_output_;
    unsigned n_threads_;
    const LeafIndex* index_ = nullptr;
    Interruption interruption_{pending_signals()};
    const char* rows_name_ = "";
    py::array keep_;
    std::optional<std::vector<std::uint32_t>> leave_out_;
    std::unique_ptr<LeafSource> source_;
};

}  // namespace hdicore::bindings
