#include "platform/files/trace_output.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tensorpool::platform {
namespace {

namespace fs = std::filesystem;

/// A folder whose path has the given length.
class LongFolder {
public:
    explicit LongFolder(std::size_t length) {
        std::string name = fs::temp_directory_path() / "trace-output-XXXXXX";
        root_ = path_ = ::mkdtemp(name.data());
        while (path_.size() + 1 < length) {
            path_ += '/' + std::string(std::min<std::size_t>(100, length - path_.size() - 1), 'a');
        }
        fs::create_directories(path_);
    }
    ~LongFolder() { fs::remove_all(root_); }
    LongFolder(const LongFolder&) = delete;
    LongFolder& operator=(const LongFolder&) = delete;

    const std::string& path() const { return path_; }

private:
    std::string root_;
    std::string path_;
};

std::uintmax_t files_in(const std::string& folder) {
    return static_cast<std::uintmax_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(TraceOutput, OverlongPathOpensNoOtherFile) {
    const LongFolder folder(500);
    const std::string path = folder.path() + "/trace-of-the-second-run.tpt";
    TraceOutput output;
    EXPECT_FALSE(output.open(path.c_str()));
    EXPECT_FALSE(output.is_open());
    EXPECT_NE(std::string(output.problem()), "");
    EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(TraceOutput, PathWithoutRoomForNumberOpensNoOtherFile) {
    const LongFolder folder(500);
    const std::string path = folder.path() + "/trace.tpt";
    ASSERT_LT(path.size(), 512U);
    TraceOutput first;
    ASSERT_TRUE(first.open(path.c_str()));
    EXPECT_EQ(std::string(first.path()), path);
    TraceOutput second;
    EXPECT_FALSE(second.open((path).c_str()));
    EXPECT_EQ(files_in(folder.path()), 1U);
    first.close();
}

}  // namespace
}  // namespace tensorpool::platform
