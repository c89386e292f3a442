// queries.hpp: the methods that LeafIndex (given leaves) and Scorer (given rows) have in common
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "arrays.hpp"
#include "bound.hpp"

namespace hdicore::bindings {

inline const BoundIndex& index_of(const BoundIndex& self) {
    return self;
}
inline const BoundIndex& index_of(const BoundScorer& self) {
    return self.bound_index;
}

// What a query is asked for: rows or leaves, checked, with the memory they live in.
class Query {
  public:
    Query(const BoundScorer& self, const py::object& X, const py::object& leave_out,
          const py::object& n_threads, const py::object& block_rows)
        : Query(self.bound_index, leave_out, n_threads, block_rows) {
        rows_name_ = "X";
        source_ = std::make_unique<RoutedRows>(self.engine.forest(), row_matrix(X, keep_));
        check_leave_out();
    }

    Query(const BoundIndex& self, const py::object& leaves, const py::object& leave_out,
          const py::object& n_threads, const py::object& block_rows)
        : Query(self, leave_out, n_threads, block_rows) {
        const auto ids = integers<leaf_t>(leaves, "leaves");
        check_ndim(ids, "leaves", 2);
        check_shape(ids, "leaves",
                    {ids.shape(0), static_cast<py::ssize_t>(self.engine->n_trees())});
        rows_name_ = "leaves";
        keep_ = ids;
        source_ = std::make_unique<GivenLeaves>(*self.engine, ids.data(),
                                                static_cast<std::size_t>(ids.shape(0)));
        check_leave_out();
    }

    // Shape of a result: rows, outputs unless y had one dimension, and what is asked of each.
    Shape shape(const Shape& rest) const {
        Shape full{static_cast<py::ssize_t>(source_->n_rows())};
        if (!index_.scalar_output) {
            full.push_back(static_cast<py::ssize_t>(index_.engine->n_outputs()));
        }
        full.insert(full.end(), rest.begin(), rest.end());
        return full;
    }

    // The axes of an array behind those of rows and outputs.
    Shape rest_of(const py::array& array) const {
        return {array.shape() + shape({}).size(), array.shape() + array.ndim()};
    }

    // Points given for each row (and output), one or several.
    py::array_t<double> points(const py::object& object, const char* name,
                               std::size_t& n_points) const {
        auto found = reals(object, name);
        const Shape one = shape({});
        const auto extra = found.ndim() - static_cast<py::ssize_t>(one.size());
        n_points = 1;
        if (extra == 1) n_points = static_cast<std::size_t>(found.shape(found.ndim() - 1));
        check_shape(found, name, extra == 1 ? shape({static_cast<py::ssize_t>(n_points)}) : one);
        return found;
    }

    // An array to fill: the caller's, which must not be the memory of the rows, or a new one.
    template <class T = double>
    py::array_t<T> output(const py::object& out, const Shape& rest,
                          const char* name = "out") const {
        auto found = output_array<T>(out, shape(rest), name);
        check_disjoint(found, name, keep_, rows_name_);
        return found;
    }

    void score(const Wanted& wanted) {
        const py::gil_scoped_release no_gil;
        hdicore::score(*index_.engine, *source_, left_out(), wanted, run());
    }

    Sparse<double> weights() {
        const py::gil_scoped_release no_gil;
        return hdicore::weights(*index_.engine, *source_, left_out(), run());
    }

    Sparse<std::int64_t> proximities() {
        const py::gil_scoped_release no_gil;
        return hdicore::proximities(*index_.engine, *source_, left_out(), run());
    }

    py::array_t<std::int64_t> count_samples() {
        py::array_t<std::int64_t> found(static_cast<py::ssize_t>(source_->n_rows()));
        std::int64_t* counts = found.mutable_data();
        {
            const py::gil_scoped_release no_gil;
            hdicore::count_samples(*index_.engine, *source_, run(), counts);
        }
        return found;
    }

  private:
    Query(const BoundIndex& index, const py::object& leave_out, const py::object& n_threads,
          const py::object& block_rows)
        : index_(index),
          n_threads_(thread_count(n_threads)),
          block_rows_(static_cast<std::size_t>(
              whole_number(block_rows, "block_rows", 0, std::int64_t{1} << 62))) {
        if (leave_out.is_none()) return;
        // A copy, as it must not change between its check and its use.
        const auto rows = integers<std::uint32_t>(leave_out, "leave_out");
        check_ndim(rows, "leave_out", 1);
        leave_out_.emplace(rows.data(), rows.data() + rows.size());
    }

    void check_leave_out() const {
        if (leave_out_ && leave_out_->size() != source_->n_rows()) {
            throw py::value_error("leave_out must name one training row for each of " +
                                  std::to_string(source_->n_rows()) + " rows, got " +
                                  std::to_string(leave_out_->size()));
        }
    }

    const std::uint32_t* left_out() const { return leave_out_ ? leave_out_->data() : nullptr; }
    Run run() {
        return {.n_threads = n_threads_, .block_rows = block_rows_, .interruption = interruption_};
    }

    const BoundIndex& index_;
    unsigned n_threads_;
    std::size_t block_rows_;
    Interruption interruption_{pending_signals()};
    const char* rows_name_ = "";
    py::array keep_;
    std::optional<std::vector<std::uint32_t>> leave_out_;
    std::unique_ptr<LeafSource> source_;
};

inline Shape axis_of(const Shares& shares) {
    return shares.is_scalar ? Shape{} : Shape{static_cast<py::ssize_t>(shares.values.size())};
}

inline Kind kind_named(const py::object& name) {
    constexpr std::pair<const char*, Kind> kinds[] = {
        {"hdi", Kind::hdi},
        {"equal_tailed", Kind::equal_tailed},
        {"lower", Kind::lower},
        {"upper", Kind::upper},
    };
    return word(name, "kind", kinds);
}

inline Interpolation interpolation_named(const py::object& name) {
    constexpr std::pair<const char*, Interpolation> interpolations[] = {
        {"inverted_cdf", Interpolation::inverted_cdf},
        {"averaged_inverted_cdf", Interpolation::averaged_inverted_cdf},
        {"linear", Interpolation::linear},
        {"lower", Interpolation::lower},
        {"higher", Interpolation::higher},
        {"midpoint", Interpolation::midpoint},
        {"nearest", Interpolation::nearest},
        {"closest_observation", Interpolation::closest_observation},
        {"interpolated_inverted_cdf", Interpolation::interpolated_inverted_cdf},
        {"hazen", Interpolation::hazen},
        {"weibull", Interpolation::weibull},
        {"median_unbiased", Interpolation::median_unbiased},
        {"normal_unbiased", Interpolation::normal_unbiased},
    };
    return word(name, "interpolation", interpolations);
}

// Moves a vector into a numpy array that owns it.
template <class T>
py::array_t<T> array_from(std::vector<T> values) {
    auto* moved = new std::vector<T>(std::move(values));
    const py::capsule owner(moved, [](void* p) { delete static_cast<std::vector<T>*>(p); });
    return py::array_t<T>(static_cast<py::ssize_t>(moved->size()), moved->data(), owner);
}

// The arrays of a CSR matrix: indptr, indices, data.
template <class T>
py::tuple csr(Sparse<T> found) {
    return py::make_tuple(array_from(std::move(found.indptr)), array_from(std::move(found.indices)),
                          array_from(std::move(found.data)));
}

// Defines mean, intervals, quantiles, cdf, draws, weights, proximities and n_samples; `rows` names
// their first argument.
template <class Self, class... Options>
void register_queries(py::class_<Self, Options...>& cls, const char* rows) {
    const py::arg_v leave_out = py::arg("leave_out") = py::none();
    const py::arg_v n_threads = py::arg("n_threads") = 0;
    const py::arg_v block_rows = py::arg("block_rows") = 0;
    const py::arg_v out = py::arg("out") = py::none();
    cls.def(
        "mean",
        [](const Self& self, const py::object& given, const py::object& left_out,
           const py::object& threads, const py::object& block, const py::object& into) {
            Query query(self, given, left_out, threads, block);
            auto found = query.output(into, {});
            Wanted wanted;
            wanted.mean = found.mutable_data();
            query.score(wanted);
            return found;
        },
        py::arg(rows), py::kw_only(), leave_out, n_threads, block_rows, out,
        "Mean of the conditional distribution of each row, (n,) or (n, n_outputs).");
    cls.def(
        "intervals",
        [](const Self& self, const py::object& given, const py::object& coverage,
           const py::object& kind, const py::object& mean, const py::object& left_out,
           const py::object& threads, const py::object& block, const py::object& into) {
            Query query(self, given, left_out, threads, block);
            const Shares levels = shares(coverage, "coverage", false);
            Shape ends{2};
            if (!levels.is_scalar) ends.push_back(axis_of(levels)[0]);
            auto found = query.output(into, ends);
            Wanted wanted;
            wanted.coverages = levels.values;
            wanted.kind = kind_named(kind);
            wanted.intervals = found.mutable_data();
            if (!mean.is_none()) {
                auto means = query.output(mean, {}, "mean");
                check_disjoint(means, "mean", found, "out");
                wanted.mean = means.mutable_data();
            }
            query.score(wanted);
            return found;
        },
        py::arg(rows), py::arg("coverage") = 0.9, py::arg("kind") = "hdi", py::kw_only(),
        py::arg("mean") = py::none(), leave_out, n_threads, block_rows, out,
        R"(Prediction intervals, (n, 2) for one coverage, (n, 2, k) for a list of k.

With several outputs their axis stands behind n. All levels are read from one
gathering of the row's leaves. `kind` is 'hdi' (shortest), 'equal_tailed', 'lower'
([bound, inf]) or 'upper' ([-inf, bound]). `mean`, an array (n,) or (n, n_outputs),
is filled in the same pass. Row i of the query leaves training row leave_out[i] out,
which must count exactly once in each of the leaves; -1 stands for a tree where it
does not. Rows for which no tree speaks are NaN.)");
    cls.def(
        "quantiles",
        [](const Self& self, const py::object& given, const py::object& levels_given,
           const py::object& interpolation, const py::object& left_out, const py::object& threads,
           const py::object& block, const py::object& into) {
            Query query(self, given, left_out, threads, block);
            const Shares levels = shares(levels_given, "quantiles", true);
            auto found = query.output(into, axis_of(levels));
            Wanted wanted;
            wanted.levels = levels.values;
            wanted.interpolation = interpolation_named(interpolation);
            wanted.quantiles = found.mutable_data();
            query.score(wanted);
            return found;
        },
        py::arg(rows), py::arg("quantiles"), py::arg("interpolation") = "inverted_cdf",
        py::kw_only(), leave_out, n_threads, block_rows, out,
        "Quantiles, (n,) for one level in [0, 1], (n, k) for a list of k; with several outputs\n"
        "their axis stands behind n.");
    cls.def(
        "cdf",
        [](const Self& self, const py::object& given, const py::object& y, bool inclusive,
           const py::object& left_out, const py::object& threads, const py::object& block,
           const py::object& into) {
            Query query(self, given, left_out, threads, block);
            Wanted wanted;
            wanted.inclusive = inclusive;
            std::size_t n_points = 0;
            const auto points = query.points(y, "y", n_points);
            for (py::ssize_t i = 0; i < points.size(); ++i) {
                if (std::isnan(points.data()[i])) throw py::value_error("y must not hold NaN");
            }
            auto found = query.output(into, query.rest_of(points));
            check_disjoint(found, "out", points, "y");
            wanted.n_points = n_points;
            wanted.points = points.data();
            wanted.cdf = found.mutable_data();
            query.score(wanted);
            return found;
        },
        py::arg(rows), py::arg("y"), py::kw_only(), py::arg("inclusive") = true, leave_out,
        n_threads, block_rows, out,
        "P(Y <= y) for one y per row, (n,), or several, (n, k); with several outputs their axis\n"
        "stands behind n. P(Y < y) if not `inclusive`.");
    cls.def(
        "draws",
        [](const Self& self, const py::object& given, const py::object& uniforms,
           const py::object& left_out, const py::object& threads, const py::object& block,
           const py::object& into) {
            Query query(self, given, left_out, threads, block);
            Wanted wanted;
            const auto shares_drawn = query.points(uniforms, "uniforms", wanted.n_draws);
            auto found = query.output(into, query.rest_of(shares_drawn));
            if (found.data() != shares_drawn.data()) {
                check_disjoint(found, "out", shares_drawn, "uniforms");
            }
            for (py::ssize_t i = 0; i < shares_drawn.size(); ++i) {
                const double u = shares_drawn.data()[i];
                if (!(u >= 0 && u < 1)) throw py::value_error("uniforms must lie in [0, 1)");
                found.mutable_data()[i] = u;
            }
            wanted.draws = found.mutable_data();
            query.score(wanted);
            return found;
        },
        py::arg(rows), py::arg("uniforms"), py::kw_only(), leave_out, n_threads, block_rows, out,
        "Draws from the conditional distribution, one for each uniform number in [0, 1): (n,) or\n"
        "(n, k); with several outputs their axis stands behind n. `out` may be `uniforms` itself.");
    cls.def(
        "weights",
        [](const Self& self, const py::object& given, const py::object& left_out,
           const py::object& threads, const py::object& block) {
            return csr(Query(self, given, left_out, threads, block).weights());
        },
        py::arg(rows), py::kw_only(), leave_out, n_threads, block_rows,
        "Weights of the atoms as CSR arrays (indptr, indices, data) of an (n, n_atoms) matrix\n"
        "whose rows sum to 1, or are empty where no tree speaks. For an index of one output.");
    cls.def(
        "proximities",
        [](const Self& self, const py::object& given, const py::object& left_out,
           const py::object& threads, const py::object& block) {
            return csr(Query(self, given, left_out, threads, block).proximities());
        },
        py::arg(rows), py::kw_only(), leave_out, n_threads, block_rows,
        "How often training rows with the target of each atom count in the row's leaves, summed\n"
        "over trees, as CSR arrays (indptr, indices, counts) of an (n, n_atoms) matrix of int64.\n"
        "With y = 0, 1, 2, ... at the build atoms are training rows. For an index of one output.");
    cls.def(
        "n_samples",
        [](const Self& self, const py::object& given, const py::object& threads,
           const py::object& block) {
            return Query(self, given, py::none(), threads, block).count_samples();
        },
        py::arg(rows), py::kw_only(), n_threads, block_rows,
        "How often training rows count in the leaves of each row, summed over trees, (n,) int64.");
}

}  // namespace hdicore::bindings
