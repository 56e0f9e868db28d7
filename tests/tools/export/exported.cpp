#include "tools/export/exported.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "tools/temporary_folder.hpp"

namespace tensorpool::command::export_::testing {

std::string written(const std::function<void(WrittenFile&)>& write) {
    const photos::TemporaryFolder folder;
    const std::string path = folder.path() / "out";
    {
        WrittenFile file(path, "");
        write(file);
        file.finish();
    }
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

Printed printed_by(const std::string& command_line) {
    Printed printed;
    std::FILE* const pipe = popen(command_line.c_str(), "re");
    if (pipe == nullptr) return printed;
    std::array<char, 4096> part;
    while (const std::size_t bytes = std::fread(part.data(), 1, part.size(), pipe)) {
        printed.text.append(part.data(), bytes);
    }
    const int status = pclose(pipe);
    if (WIFEXITED(status)) printed.code = WEXITSTATUS(status);
    return printed;
}

std::string checked_snapshot(const std::string& pickle) {
    const photos::TemporaryFolder folder;
    const std::string path = folder.file("snapshot.pickle", pickle);
    const Printed answer =
        printed_by("/usr/bin/python3 '" TENSORPOOL_CHECK_SNAPSHOT "' '" + path + "' 2>&1");
    EXPECT_EQ(answer.code, 0) << answer.text;
    return answer.code == 0 ? answer.text : "";
}

}  // namespace tensorpool::command::export_::testing
