// test_processors.cpp: limits on the number of threads, from made-up control groups
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/processors.hpp"
#include "check.hpp"

using namespace hdicore;
namespace fs = std::filesystem;

namespace {

// A folder of files that goes away with it.
class Folder {
  public:
    Folder() : path_(fs::temp_directory_path() / ("hdicore_" + std::to_string(std::rand()))) {
        fs::create_directories(path_);
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    void write(const std::string& name, const std::string& text) const {
        fs::create_directories((path_ / name).parent_path());
        std::ofstream(path_ / name) << text;
    }
    std::optional<unsigned> quota() const {
        return hdicore::quota((path_ / "groups").string(), path_.string());
    }

  private:
    fs::path path_;
};

void counts_are_read_from_lists() {
    CHECK(first_count("4") == 4u);
    CHECK(first_count("3,2,1") == 3u);
    CHECK(first_count(" 5 , 2") == 5u);
    for (const char* none : {"", "0", "-1", "x", "4x", ",2", " ", "99999999999999999999"}) {
        CHECK(!first_count(none));
    }
}

void the_second_kind_has_one_tree() {
    const Folder folder;
    folder.write("groups", "0::/a/b\n");
    CHECK(!folder.quota());
    folder.write("a/b/cpu.max", "max 100000\n");
    CHECK(!folder.quota());
    folder.write("a/b/cpu.max", "250000 100000\n");
    CHECK(folder.quota() == 3u);
    folder.write("a/cpu.max", "150000 100000\n");  // binds what is below
    CHECK(folder.quota() == 2u);
    folder.write("cpu.max", "50000 100000\n");
    CHECK(folder.quota() == 1u);
}

void the_first_kind_has_one_tree_for_each_controller() {
    const Folder folder;
    folder.write("groups", "5:memory:/m\n4:cpu,cpuacct:/c\n0::/\n");
    CHECK(!folder.quota());
    folder.write("cpu/c/cpu.cfs_quota_us", "-1\n");
    folder.write("cpu/c/cpu.cfs_period_us", "100000\n");
    CHECK(!folder.quota());
    folder.write("cpu/c/cpu.cfs_quota_us", "400000\n");
    CHECK(folder.quota() == 4u);
    folder.write("cpu/cpu.cfs_quota_us", "200000\n");
    folder.write("cpu/cpu.cfs_period_us", "100000\n");
    CHECK(folder.quota() == 2u);
}

void nonsense_is_no_limit() {
    const Folder folder;
    CHECK(!folder.quota());  // there is no list
    for (const char* groups : {"", "0", ":", "::", "0::", "a:b:c", "0:cpu:", "::/\n:::", "0::x"}) {
        folder.write("groups", groups);
        CHECK(!folder.quota());
    }
    folder.write("groups", "0::/a\n");
    for (const char* limit : {"", "max", "x y", "0 100000", "100000 0", "-1 -1", "100000"}) {
        folder.write("a/cpu.max", limit);
        CHECK(!folder.quota());
    }
    folder.write("a/cpu.max", "1e300 1");
    CHECK(folder.quota() > 1000u);
}

#if !defined(_WIN32)
void the_environment_limits() {
    const unsigned all = available_threads();
    CHECK(all >= 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    CHECK(available_threads() == 1);
    setenv("OMP_NUM_THREADS", "100000", 1);
    CHECK(available_threads() >= all);
    unsetenv("OMP_NUM_THREADS");
}
#endif

}  // namespace

int main() {
    counts_are_read_from_lists();
    the_second_kind_has_one_tree();
    the_first_kind_has_one_tree_for_each_controller();
    nonsense_is_no_limit();
#if !defined(_WIN32)
    the_environment_limits();
#endif
    return check::finish();
}
