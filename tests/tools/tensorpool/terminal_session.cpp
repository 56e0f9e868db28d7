#include "terminal_session.hpp"

#include <unistd.h>

#include <stdexcept>

#include "support/run_program.hpp"

namespace tensorpool::command {
namespace {

constexpr const char* program = "/usr/bin/tmux";

}  // namespace

bool TerminalSession::is_possible() {
    return access(program, X_OK) == 0;
}

TerminalSession::TerminalSession(const std::string& line) {
    std::string name = std::filesystem::temp_directory_path() / "terminal-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for tmux");
    folder_ = name;
    tmux({"-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24",
          "export TERM=screen LC_ALL=C.UTF-8; " + line + "; echo status $?; cat"});
}

TerminalSession::~TerminalSession() {
    tmux({"kill-server"});
    std::filesystem::remove_all(folder_);
}

void TerminalSession::press(const std::string& key) {
    tmux({"send-keys", key});
}

void TerminalSession::resize(int columns, int rows) {
    tmux({"resize-window", "-x", std::to_string(columns), "-y", std::to_string(rows)});
}

std::string TerminalSession::screen() const {
    return tmux({"capture-pane", "-p"});
}

bool TerminalSession::comes_to_show(const std::string& text) const {
    for (int attempts = 0; attempts < 1200; ++attempts) {
        if (screen().find(text) != std::string::npos) return true;
        usleep(50'000);
    }
    return false;
}

std::string TerminalSession::tmux(std::vector<std::string> arguments) const {
    const std::vector<std::string> socket = {"-u", "-S", folder_ / "socket"};
    arguments.insert(arguments.begin(), socket.begin(), socket.end());
    return testing::run_program(program, arguments).output;
}

}  // namespace tensorpool::command
