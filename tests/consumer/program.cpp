// program.cpp: a C++ program that compiles against the installed headers
#include <cstdio>
#include <vector>

#include "hdicore/distribution.hpp"
#include "hdicore/forest.hpp"
#include "hdicore/hdi.hpp"
#include "hdicore/leaf_index.hpp"
#include "hdicore/parallel.hpp"
#include "hdicore/quantile.hpp"
#include "hdicore/scorer.hpp"
#include "hdicore/types.hpp"

int main() {
    const std::vector<double> values{0, 1, 2};
    const std::vector<hdicore::mass_t> cumulative{0, 1, 2, 3};
    const hdicore::Atoms atoms{values, cumulative, 1, hdicore::narrow_shift};
    std::printf("%zu %lld\n", atoms.size(), static_cast<long long>(atoms.total()));
}
