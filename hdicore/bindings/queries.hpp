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
    return *self.index;
}

// What a query is asked for: rows or leaves, checked, with the memory they live in.
class Query {
  public:
    Query(const BoundScorer& self, const py::object& X, const py::object& leave_out,
          const py::object& n_threads, const py::object& block_rows)
        : Query(*self.index, leave_out, n_threads, block_rows) {
        source_ = std::make_unique<RoutedRows>(*self.forest, row_matrix(X, keep_));
        check_leave_out();
    }

    Query(const BoundIndex& self, const py::object& leaves, const py::object& leave_out,
          const py::object& n_threads, const py::object& block_rows)
        : Query(self, leave_out, n_threads, block_rows) {
        const auto ids = integers<leaf_t>(leaves, "leaves");
        check_ndim(ids, "leaves", 2);
        check_shape(ids, "leaves",
                    {ids.shape(0), static_cast<py::ssize_t>(self.engine->n_trees())});
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

    void score(const Wanted& wanted) const {
        const py::gil_scoped_release no_gil;
        hdicore::score(*index_.engine, *source_, leave_out_ ? leave_out_->data() : nullptr, wanted,
                       run_);
    }

    Weights weights() const {
        const py::gil_scoped_release no_gil;
        return hdicore::weights(*index_.engine, *source_, run_);
    }

  private:
    Query(const BoundIndex& index, const py::object& leave_out, const py::object& n_threads,
          const py::object& block_rows)
        : index_(index),
          run_{thread_count(n_threads), static_cast<std::size_t>(whole_number(
                                            block_rows, "block_rows", 0, std::int64_t{1} << 62))} {
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

    const BoundIndex& index_;
    Run run_;
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

// Defines mean, intervals, quantiles, cdf, draws and weights; `rows` names their first argument.
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
            const Query query(self, given, left_out, threads, block);
            auto found = output_array<double>(into, query.shape({}));
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
            const Query query(self, given, left_out, threads, block);
            const Shares levels = shares(coverage, "coverage", false);
            Shape ends{2};
            if (!levels.is_scalar) ends.push_back(axis_of(levels)[0]);
            auto found = output_array<double>(into, query.shape(ends));
            Wanted wanted;
            wanted.coverages = levels.values;
            wanted.kind = kind_named(kind);
            wanted.intervals = found.mutable_data();
            if (!mean.is_none()) {
                wanted.mean = output_array<double>(mean, query.shape({}), "mean").mutable_data();
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
            const Query query(self, given, left_out, threads, block);
            const Shares levels = shares(levels_given, "quantiles", true);
            auto found = output_array<double>(into, query.shape(axis_of(levels)));
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
        [](const Self& self, const py::object& given, const py::object& y,
           const py::object& left_out, const py::object& threads, const py::object& block,
           const py::object& into) {
            const Query query(self, given, left_out, threads, block);
            Wanted wanted;
            const auto points = query.points(y, "y", wanted.n_points);
            for (py::ssize_t i = 0; i < points.size(); ++i) {
                if (std::isnan(points.data()[i])) throw py::value_error("y must not hold NaN");
            }
            auto found =
                output_array<double>(into, Shape(points.shape(), points.shape() + points.ndim()));
            wanted.points = points.data();
            wanted.cdf = found.mutable_data();
            query.score(wanted);
            return found;
        },
        py::arg(rows), py::arg("y"), py::kw_only(), leave_out, n_threads, block_rows, out,
        "P(Y <= y) for one y per row, (n,), or several, (n, k); with several outputs their axis\n"
        "stands behind n.");
    cls.def(
        "draws",
        [](const Self& self, const py::object& given, const py::object& uniforms,
           const py::object& left_out, const py::object& threads, const py::object& block,
           const py::object& into) {
            const Query query(self, given, left_out, threads, block);
            Wanted wanted;
            const auto shares_drawn = query.points(uniforms, "uniforms", wanted.n_draws);
            auto found = output_array<double>(
                into, Shape(shares_drawn.shape(), shares_drawn.shape() + shares_drawn.ndim()));
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
        [](const Self& self, const py::object& given, const py::object& threads,
           const py::object& block) {
            Weights found = Query(self, given, py::none(), threads, block).weights();
            return py::make_tuple(array_from(std::move(found.indptr)),
                                  array_from(std::move(found.indices)),
                                  array_from(std::move(found.data)));
        },
        py::arg(rows), py::kw_only(), n_threads, block_rows,
        "Weights of the atoms as CSR arrays (indptr, indices, data) of an (n, n_atoms) matrix\n"
        "whose rows sum to 1. For an index of one output.");
}

}  // namespace hdicore::bindings
