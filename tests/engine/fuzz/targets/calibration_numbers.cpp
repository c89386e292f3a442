// calibration_numbers.cpp: fuzzes the array that a calibration is in, and what is computed by it
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "calibrated/stored_calibration.hpp"
#include "input.hpp"

namespace {

using namespace fuzz;
using namespace hdicore;

// An array that is sound, of few of everything.
std::vector<double> sound(Input& in) {
    const bool by_folds = in.one_in(6);
    const std::size_t k = 1 + in.below(4), g = by_folds ? 0 : in.below(4);
    const std::size_t n_known = by_folds ? 0 : in.below(5);
    const bool has_lattice = in.one_in(2);
    const std::size_t n_targets = has_lattice ? in.below(6) : 0;
    const auto real = [](std::size_t n) { return static_cast<double>(n); };
    const double method = real(by_folds ? 2 + in.below(2) : in.below(2));
    std::vector<double> numbers{StoredCalibration::version,
                                method,
                                real(in.below(3)),
                                real(k),
                                real(in.below(2)),
                                has_lattice ? 1.0 : 0.0,
                                real(n_targets),
                                real(g),
                                real(in.below(4)) - 1,
                                real(n_known),
                                -2,
                                5,
                                -2,
                                1,
                                1e-6};
    for (std::size_t j = 0; j < k; ++j) {
        const double coverage = (real(j) + 1) / (real(k) + 1);
        const double q_hat = in.real();
        numbers.insert(numbers.end(), {coverage, std::array{0.0, 1.0, 5.0}[in.below(3)], coverage,
                                       q_hat > -HUGE_VAL ? q_hat : HUGE_VAL});
    }
    for (std::size_t i = 0; i < n_targets; ++i) numbers.push_back(real(i) - 2);
    for (std::size_t i = 0; i < g; ++i) {
        numbers.insert(numbers.end(), {real(i == 1 ? 1 : in.below(2) * 2), real(i)});
    }
    for (std::size_t i = 0; i < g * k; ++i)
        numbers.push_back(in.one_in(3) ? NAN : real(in.below(5)));
    for (std::size_t i = 0; i < n_known; ++i)
        numbers.push_back((real(i) + 1) / (real(n_known) + 1));
    for (std::size_t i = 0; i < n_known; ++i) numbers.push_back(real(i) - 1);
    return numbers;
}

void use(const StoredCalibration& found, Input& in) {
    const PostProcess postprocess = found.postprocess();
    std::vector<double> lower, upper, q_hat;
    double coverage = 0;
    for (const CalibratedLevel& level : found.levels) {
        REQUIRE(level.coverage > coverage && level.coverage < 1);
        coverage = level.coverage;
        const double end = static_cast<double>(in.below(9)) - 4;
        lower.push_back(end);
        upper.push_back(end + static_cast<double>(in.below(4)));
        q_hat.push_back(level.q_hat);
    }
    calibrate(lower, upper, q_hat, postprocess);
    for (std::size_t j = 0; j < lower.size(); ++j) {
        REQUIRE(lower[j] <= upper[j]);
        REQUIRE(j == 0 || (lower[j] <= lower[j - 1] && upper[j] >= upper[j - 1]));
    }
    if (!found.groups) return;
    const auto& labels = found.groups->labels;
    REQUIRE(found.groups->q_hat.size() == labels.size() * found.levels.size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const bool is_text = labels[i] && std::isnan(*labels[i]);
        REQUIRE(is_text || found.groups->find(labels[i].value_or(NAN)) == i);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    std::vector<double> numbers = sound(in);
    const std::size_t n_changes = in.below(4);
    for (std::size_t i = 0; i < n_changes; ++i) {
        in.one_in(5) ? in.resize(numbers) : in.poke(numbers);
    }
    StoredCalibration found{};
    const std::string why = refusal([&] { found = StoredCalibration::read(numbers); });
    REQUIRE(why.empty() || n_changes > 0);
    if (why.empty()) use(found, in);
    return 0;
}
