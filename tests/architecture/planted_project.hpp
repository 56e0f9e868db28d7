#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "architecture/layer_check.hpp"

namespace tensorpool::architecture {

/// Returns the violations as text, one a line.
inline std::string lines_of(const std::vector<Violation>& violations) {
    std::ostringstream text;
    for (const Violation& violation : violations) text << violation << '\n';
    return text.str();
}

/// A small project in a folder of its own, named after the check and the test, into which tests
/// plant faults. It begins empty and is removed with the object.
class PlantedProject : public testing::Test {
protected:
    explicit PlantedProject(const std::string& check) {
        const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
        root_ = std::filesystem::path(TENSORPOOL_PLANTED_FOLDER) / (check + '_' + test->name());
        std::filesystem::remove_all(root_);
        std::filesystem::create_directories(root_);
    }
    ~PlantedProject() override { std::filesystem::remove_all(root_); }

    void write(const std::string& file, const std::string& text) {
        std::filesystem::create_directories((root_ / file).parent_path());
        std::ofstream(root_ / file) << text;
    }

    std::filesystem::path root_;
};

}  // namespace tensorpool::architecture
