// build_leaf_index.cpp: builds an index from whole arrays of leaves, or by blocks of trees
// SPDX-License-Identifier: BSD-3-Clause
#include "build_leaf_index.hpp"

#include "arrays.hpp"
#include "index/leaf_index_builder.hpp"

namespace hdicore::bindings {
namespace {

// What all ways to build an index have in common.
struct Options {
    const py::object& event;
    const py::object& sample_weight;
    bool keep_row_weights;
    bool pooled;
    const py::object& max_samples_leaf;
    const py::object& seed;
    const py::object& n_threads;
};

// Checked arguments, and the arrays that keep their memory.
class Arguments {
  public:
    TrainingRows rows{};
    bool scalar_output;
    bool keep_row_weights;
    unsigned n_threads;

    Arguments(const py::object& y, const py::object& n_leaves, const Options& options)
        : keep_row_weights(options.keep_row_weights), n_threads(thread_count(options.n_threads)) {
        targets_ = reals(y, "y");
        if (targets_.ndim() != 1 && targets_.ndim() != 2) {
            throw py::value_error("y must have 1 or 2 dimensions, got shape " +
                                  shape_text(shape_of(targets_)));
        }
        scalar_output = targets_.ndim() == 1;
        rows.y = {targets_.data(), static_cast<std::size_t>(targets_.shape(0)),
                  scalar_output ? 1 : static_cast<std::size_t>(targets_.shape(1))};
        rows.pooled = options.pooled;
        if (!options.event.is_none()) {
            events_ = truths(options.event, "event");
            check_shape(events_, "event", {targets_.shape(0)});
            rows.event = span_of(events_);
        }
        if (!options.sample_weight.is_none()) {
            weights_ = reals(options.sample_weight, "sample_weight");
            check_shape(weights_, "sample_weight", {targets_.shape(0)});
            rows.sample_weight = span_of(weights_);
        }
        if (!n_leaves.is_none()) {
            sizes_ = integers<std::int64_t>(n_leaves, "n_leaves");
            check_ndim(sizes_, "n_leaves", 1);
            rows.n_leaves = span_of(sizes_);
            rows.n_trees = rows.n_leaves.size();
        }
        constexpr std::int64_t max = std::int64_t{1} << 62;
        if (!options.max_samples_leaf.is_none()) {
            rows.max_samples_leaf = static_cast<std::size_t>(
                whole_number(options.max_samples_leaf, "max_samples_leaf", 1, max));
        }
        rows.seed = static_cast<std::uint64_t>(whole_number(options.seed, "seed", 0, max));
    }

  private:
    py::array_t<double> targets_;
    py::array_t<bool> events_;
    py::array_t<double> weights_;
    py::array_t<std::int64_t> sizes_;
};

void check_rows(const py::array& leaves, const TrainingRows& rows) {
    check_ndim(leaves, "leaves", 2);
    if (static_cast<std::size_t>(leaves.shape(0)) == rows.n_rows()) return;
    throw py::value_error("y must have a row for each row of leaves, " +
                          std::to_string(leaves.shape(0)) + ", got " +
                          std::to_string(rows.n_rows()));
}

BoundIndex make_index(const py::object& leaves, const py::object& y, const py::object& counts,
                      const py::object& n_leaves, bool mask_leaves, const Options& options) {
    const auto ids = integers<leaf_t>(leaves, "leaves");
    check_ndim(ids, "leaves", 2);
    Arguments given(y, n_leaves, options);
    TrainingRows& rows = given.rows;
    check_rows(ids, rows);
    if (!n_leaves.is_none()) {
        check_shape(as_array(n_leaves), "n_leaves", {ids.shape(1)});
    }
    rows.n_trees = static_cast<std::size_t>(ids.shape(1));
    rows.leaves = matrix_of(ids);
    rows.mask_leaves = mask_leaves;
    py::array_t<std::int32_t> count_array;
    if (!counts.is_none()) {
        count_array = integers<std::int32_t>(counts, "counts");
        check_shape(count_array, "counts", {ids.shape(0), ids.shape(1)});
        rows.counts = matrix_of(count_array);
    }
    Interruption interruption(pending_signals());
    const py::gil_scoped_release no_gil;
    return {engine_of(LeafIndex(rows, given.keep_row_weights, given.n_threads, interruption)),
            given.scalar_output};
}

// Some columns of a matrix (n, k), each of which is then one run of memory.
py::array_t<std::int32_t> columns(const py::handle& matrix, const char* name) {
    const py::array array = numbers(matrix, name, "biuf");
    check_ndim(array, name, 2);
    return integers<std::int32_t>(array.attr("T"), name);
}

void add_block(const py::handle& item, const TrainingRows& rows, std::size_t first,
               LeafIndexBuilder& builder, std::size_t& n_added) {
    if (!py::isinstance<py::sequence>(item) || py::len(item) != 2) {
        throw py::type_error("blocks must yield pairs of leaves and counts, got " +
                             std::string(py::str(py::type::of(item).attr("__name__"))));
    }
    const auto pair = py::reinterpret_borrow<py::sequence>(item);
    const auto ids = columns(pair[0], "leaves");
    check_rows(ids.attr("T"), rows);
    py::array_t<std::int32_t> times;
    if (!pair[1].is_none()) {
        times = columns(pair[1], "counts");
        check_shape(times.attr("T"), "counts", {ids.shape(1), ids.shape(0)});
    }
    n_added = static_cast<std::size_t>(ids.shape(0));
    TreeBlock block{.first = first, .leaves = matrix_of(ids), .transposed = true};
    if (!pair[1].is_none()) block.counts = matrix_of(times);
    const py::gil_scoped_release no_gil;
    builder.add(block);
}

}  // namespace

BoundIndex from_numbers(const py::object& leaves, const py::object& y, const py::object& event,
                        const py::object& counts, const py::object& sample_weight,
                        const py::object& n_leaves, bool keep_row_weights, bool pooled,
                        const py::object& max_samples_leaf, const py::object& seed,
                        const py::object& n_threads) {
    return make_index(
        leaves, y, counts, n_leaves, false,
        {event, sample_weight, keep_row_weights, pooled, max_samples_leaf, seed, n_threads});
}

BoundIndex from_leaves(const py::object& leaves, const py::object& y, const py::object& event,
                       const py::object& counts, const py::object& sample_weight,
                       bool keep_row_weights, bool pooled, const py::object& max_samples_leaf,
                       const py::object& seed, const py::object& n_threads) {
    return make_index(
        leaves, y, counts, py::none(), true,
        {event, sample_weight, keep_row_weights, pooled, max_samples_leaf, seed, n_threads});
}

BoundIndex from_blocks(const py::object& blocks, const py::object& y, const py::object& n_leaves,
                       const py::object& event, const py::object& sample_weight,
                       bool keep_row_weights, bool pooled, const py::object& max_samples_leaf,
                       const py::object& seed, const py::object& n_threads) {
    const Arguments given(
        y, n_leaves,
        {event, sample_weight, keep_row_weights, pooled, max_samples_leaf, seed, n_threads});
    Interruption interruption(pending_signals());
    const auto make_builder = [&] {
        const py::gil_scoped_release no_gil;
        return std::make_unique<LeafIndexBuilder>(given.rows, given.keep_row_weights,
                                                  given.n_threads, interruption);
    };
    const auto builder = make_builder();
    while (builder->wants_trees()) {
        const py::object trees = PyCallable_Check(blocks.ptr()) != 0 ? blocks() : blocks;
        std::size_t first = 0;
        for (const py::handle item : trees) {
            std::size_t n_added = 0;
            add_block(item, given.rows, first, *builder, n_added);
            first += n_added;
        }
        builder->end_pass();
    }
    const py::gil_scoped_release no_gil;
    return {engine_of(LeafIndex(std::move(*builder))), given.scalar_output};
}

}  // namespace hdicore::bindings
