#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "exchange.hpp"
#include "socket_client.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::serve {
namespace {

using photos::TemporaryFolder;
using testing::get;
using testing::status_of;

/// Runs `tensorpool serve` with arguments, and reads both of its outputs.
class Program {
public:
    explicit Program(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {TENSORPOOL_PROGRAM, "serve"});
        std::vector<char*> pointers;
        for (std::string& word : arguments) pointers.push_back(word.data());
        pointers.push_back(nullptr);
        int ends[2];
        EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
        posix_spawn_file_actions_t files;
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
        EXPECT_EQ(posix_spawn(&process_, pointers[0], &files, nullptr, pointers.data(), environ),
                  0);
        posix_spawn_file_actions_destroy(&files);
        close(ends[1]);
        output_ = ends[0];
    }
    ~Program() {
        if (process_ > 0) {
            kill(process_, SIGKILL);
            wait();
        }
        close(output_);
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    std::string read_line() const {
        std::string line;
        for (char letter = 0; read(output_, &letter, 1) == 1 && letter != '\n';) line += letter;
        return line;
    }
    std::string read_all() const {
        std::string all;
        char bytes[4096];
        for (ssize_t n; (n = read(output_, bytes, sizeof bytes)) > 0;) {
            all.append(bytes, static_cast<std::size_t>(n));
        }
        return all;
    }
    void signal(int number) const { kill(process_, number); }
    /// Returns the exit status; -1 if a signal ended it.
    int wait() {
        int status = 0;
        waitpid(process_, &status, 0);
        process_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

private:
    pid_t process_ = -1;
    int output_ = -1;
};

/// Joins the lines of a help text, which are broken at its width.
std::string in_one_line(const std::string& text) {
    std::istringstream arguments(text);
    std::string line;
    for (std::string word; arguments >> word;) line += word + ' ';
    return line;
}

int port_in(const std::string& line) {
    const std::size_t at = line.find("http://127.0.0.1:");
    return at == std::string::npos ? 0 : std::stoi(line.substr(at + 17));
}

TEST(ServeProgram, PrintsItsAddressAndEndsBySignals) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        Program program({"--listen", "127.0.0.1:0"});
        const int port = port_in(program.read_line());
        ASSERT_NE(port, 0);
        EXPECT_EQ(status_of(get(port, "/metrics")), 200);
        program.signal(number);
        EXPECT_EQ(program.wait(), 0);
    }
}

TEST(ServeProgram, PrintsItsAddressAsJson) {
    const Program program({"--listen", "127.0.0.1:0", "--json"});
    const auto said = nlohmann::json::parse(program.read_line());
    EXPECT_EQ(said.at("port"), port_in(said.at("url")));
}

TEST(ServeProgram, ReportsAPortInUse) {
    const Program first({"--listen", "127.0.0.1:0"});
    const std::string port = std::to_string(port_in(first.read_line()));
    Program second({"--listen", "127.0.0.1:" + port});
    const std::string said = second.read_all();
    EXPECT_EQ(second.wait(), 1);
    EXPECT_NE(said.find("cannot listen on 127.0.0.1:" + port), std::string::npos) << said;
}

TEST(ServeProgram, RequiresATokenIfOtherMachinesCanConnect) {
    for (const char* listen : {"0.0.0.0:0", "[::]:0", "192.0.2.1:0"}) {
        Program program({"--listen", listen});
        const std::string said = program.read_all();
        EXPECT_EQ(program.wait(), 2) << listen;
        EXPECT_NE(said.find("also give --token-file"), std::string::npos) << said;
    }
}

TEST(ServeProgram, ReadsTheTokenFromAFile) {
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.file("token", testing::the_token + "\n");
    std::filesystem::permissions(file, std::filesystem::perms(0600));
    const Program program({"--listen", "127.0.0.1:0", "--token-file", file.string()});
    const int port = port_in(program.read_line());
    EXPECT_EQ(status_of(get(port, "/metrics")), 401);
    EXPECT_EQ(
        status_of(get(port, "/metrics", "Authorization: Bearer " + testing::the_token + "\r\n")),
        200);
}

TEST(ServeProgram, RejectsInvalidArguments) {
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{"--listen", "9464"},
                                               {"--listen", "127.0.0.1:http"},
                                               {"--token-file", "/nowhere/at/all"},
                                               {"--token-file", "/dev/null"},
                                               {"--port", "1"}}) {
        Program program(arguments);
        const std::string said = program.read_all();
        EXPECT_EQ(program.wait(), 2) << arguments.back() << ": " << said;
        EXPECT_NE(said, "");
    }
}

TEST(ServeProgram, HelpStatesWhichUsersCanRead) {
    Program program({"--help"});
    const std::string said = program.read_all();
    EXPECT_EQ(program.wait(), 0);
    EXPECT_NE(said.find("--token-file"), std::string::npos);
    EXPECT_NE(in_one_line(said).find("any user of this machine can read"), std::string::npos)
        << said;
}

}  // namespace
}  // namespace tensorpool::command::serve
