// test_types.cpp: an Array keeps what it views alive
// SPDX-License-Identifier: BSD-3-Clause
#include "base/types.hpp"
#include "check.hpp"

using namespace hdicore;

int main() {
    Array<int> owned(std::vector<int>{1, 2, 3});
    const Array<int> copy = owned;
    owned = Array<int>();
    CHECK(owned.size() == 0);
    CHECK(copy.size() == 3 && copy[2] == 3 && copy.nbytes() == 12);

    auto memory = std::make_shared<const std::vector<int>>(std::vector<int>{4, 5});
    const std::weak_ptr<const std::vector<int>> watch = memory;
    {
        const Array<int> view({memory->data(), memory->size()}, memory);
        memory.reset();
        CHECK(!watch.expired() && view[1] == 5);
        CHECK(view.view().data() == view.data());
    }
    CHECK(watch.expired());

    std::vector<std::size_t> numbers(std::size_t{1} << 20);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
    const Array<std::size_t> large(std::move(numbers));
    for (std::size_t i = 0; i < large.size(); ++i) CHECK(large[i] == i);
    return check::finish();
}
