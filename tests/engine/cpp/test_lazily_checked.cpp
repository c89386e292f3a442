// test_lazily_checked.cpp: few rows leave a value unchecked, many have it checked whole, once
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/fixed_point.hpp"
#include "base/lazily_checked.hpp"
#include "check.hpp"
#include "index/uniform_units.hpp"

using namespace hdicore;

namespace {

std::atomic<int> n_checks{0};

struct Value {
    int number;
    bool is_whole;

    bool is_validated() const { return is_whole; }
    Value validated(unsigned, Interruption& interruption) const {
        interruption.check();
        ++n_checks;
        if (number < 0) throw std::invalid_argument("it is damaged");
        return {number, true};
    }
};

void few_rows_check_nothing_and_many_check_once() {
    n_checks = 0;
    const LazilyChecked<Value> value({7, false});
    for (int call = 0; call < 3; ++call) {
        CHECK(!value.for_rows(10, 30, 1, Interruption::never()).is_validated());
    }
    CHECK(n_checks == 0 && !value.current().is_validated());
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; ++k) {
        threads.emplace_back([&] {
            const Value& whole = value.for_rows(1, 30, 1, Interruption::never());
            CHECK(whole.is_validated() && whole.number == 7);
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(n_checks == 1 && value.current().is_validated());
}

void what_is_checked_already_stays_as_it_is() {
    n_checks = 0;
    const LazilyChecked<Value> value({7, true});
    CHECK(&value.validated(1, Interruption::never()) == &value.current());
    CHECK(n_checks == 0);
}

void damage_is_told_each_time() {
    const LazilyChecked<Value> value({-1, false});
    for (int call = 0; call < 2; ++call) {
        CHECK_REFUSED(value.validated(1, Interruption::never()), "it is damaged");
        CHECK(!value.current().is_validated());
    }
}

void uniform_units_are_shares_of_the_whole() {
    const UniformUnits& table = uniform_units();
    CHECK(table.begins.size() == max_tabulated_leaf + 1);
    for (std::uint32_t n = 1; n <= max_tabulated_leaf; ++n) {
        mass_t before = 0;
        bool equal = true;
        for (std::size_t k = 0; k < n; ++k) {
            const mass_t upto = floor_units(k + 1, n, narrow_shift);
            equal = equal && table.units[table.begin(n) + k] == upto - before;
            before = upto;
        }
        CHECK(equal);
    }
    CHECK(table.begin(max_tabulated_leaf + 1) == 0);
}

void equal_units_are_shares_of_the_whole() {
    std::vector<std::uint32_t> sizes{65535, 65534, 65521, 46341, 32768, 32767, 4096};
    for (std::uint32_t n = 1; n <= 1500; ++n) sizes.push_back(n);
    static_assert(max_uniform_leaf == 65535);
    for (const std::uint32_t n : sizes) {
        const std::uint32_t first = n / 3;
        EqualUnits units(EqualUnits::step(n), first);
        mass_t before = floor_units(first, n, narrow_shift);
        bool equal = true;
        for (std::size_t k = first; k < n; ++k) {
            const mass_t upto = floor_units(k + 1, n, narrow_shift);
            equal = equal && units.next() == upto - before;
            before = upto;
        }
        CHECK(equal);
    }
}

}  // namespace

int main() {
    few_rows_check_nothing_and_many_check_once();
    what_is_checked_already_stays_as_it_is();
    damage_is_told_each_time();
    uniform_units_are_shares_of_the_whole();
    equal_units_are_shares_of_the_whole();
    return check::finish();
}
