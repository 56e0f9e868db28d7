#include "holder_process.hpp"

#include <csignal>
#include <stdexcept>

namespace tensorpool::command {

HolderProcess::HolderProcess(const std::string& path) : program_({path}) {
    if (program_.read_line() != "ready") throw std::runtime_error("the holder did not start");
}

void HolderProcess::order(const std::string& what) {
    program_.write_line(what);
    if (program_.read_line() != "done") throw std::runtime_error("the holder did not do: " + what);
}

void HolderProcess::kill() {
    program_.kill(SIGKILL);
    program_.wait();
}

}  // namespace tensorpool::command
