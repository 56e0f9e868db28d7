// Question: how much of a core and how much resident memory does `tensorpool serve` take while it
// reads 50 processes with 10 pools each? Measured first alone, then with a page open. Prints one
// JSON object for each state.
//
//   serve_perf [--processes 50] [--pools 10] [--seconds 20] [--check]
//
// With --check it returns 1 if an aim is missed: 5 % of a core and 50 MiB.
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tensorpool/memory_pool.hpp>
#include <thread>
#include <vector>

namespace {

constexpr double max_percent = 5;
constexpr double max_mib = 50;

struct Options {
    unsigned processes = 50;
    unsigned pools = 10;
    unsigned seconds = 20;
    bool check = false;
};

Options read_options(int count, char** arguments) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string argument = arguments[i];
        const auto number = [&] {
            const unsigned long value =
                i + 1 < count ? std::strtoul(arguments[++i], nullptr, 10) : 0;
            if (value == 0)
                throw std::invalid_argument(argument + ": expected a number of 1 or more");
            return static_cast<unsigned>(value);
        };
        if (argument == "--check")
            options.check = true;
        else if (argument == "--processes")
            options.processes = number();
        else if (argument == "--pools")
            options.pools = number();
        else if (argument == "--seconds")
            options.seconds = number();
        else
            throw std::invalid_argument("unknown option " + argument);
    }
    return options;
}

/// One of the observed processes: holds blocks of many sizes and makes a few calls ten times a
/// second.
[[noreturn]] void work(unsigned pools, int ready) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<std::unique_ptr<tensorpool::MemoryPool>> all;
    for (unsigned i = 0; i < pools; ++i) {
        const std::string name = "pool " + std::to_string(i);
        tensorpool::PoolOptions options;
        options.name = name.c_str();
        all.push_back(std::make_unique<tensorpool::MemoryPool>(options));
        for (std::size_t bytes = 64; bytes <= 64 * 1024; bytes *= 2) {
            static_cast<void>(all.back()->allocate(bytes));
        }
    }
    if (write(ready, "", 1) != 1) _exit(1);
    for (;;) {
        for (const auto& pool : all) pool->deallocate(pool->allocate(4096), 4096);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

/// The observed processes; the destructor ends them.
struct Children {
    explicit Children(const Options& options) {
        int ends[2];
        if (pipe(ends) != 0) throw std::runtime_error("no pipe");
        for (unsigned i = 0; i < options.processes; ++i) {
            processes.push_back(fork());
            if (processes.back() == 0) work(options.pools, ends[1]);
        }
        close(ends[1]);
        char byte;
        for (unsigned i = 0; i < options.processes; ++i) {
            if (read(ends[0], &byte, 1) != 1) throw std::runtime_error("a process did not start");
        }
        close(ends[0]);
    }
    ~Children() {
        for (const pid_t process : processes) kill(process, SIGKILL);
        for (const pid_t process : processes) waitpid(process, nullptr, 0);
    }
    Children(const Children&) = delete;
    Children& operator=(const Children&) = delete;

    std::vector<pid_t> processes;
};

/// `tensorpool serve` on a free port.
struct Server {
    Server() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
        posix_spawn_file_actions_t files;
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
        std::string command[] = {PERF_TENSORPOOL_COMMAND, "serve", "--listen", "127.0.0.1:0"};
        char* pointers[] = {command[0].data(), command[1].data(), command[2].data(),
                            command[3].data(), nullptr};
        if (posix_spawn(&process, pointers[0], &files, nullptr, pointers, environ) != 0) {
            throw std::runtime_error("cannot start " PERF_TENSORPOOL_COMMAND);
        }
        posix_spawn_file_actions_destroy(&files);
        close(ends[1]);
        char line[256] = {};
        const ssize_t bytes = read(ends[0], line, sizeof line - 1);
        close(ends[0]);
        const char* at = bytes > 0 ? std::strstr(line, "http://127.0.0.1:") : nullptr;
        if (at == nullptr) throw std::runtime_error("the server did not start");
        port = static_cast<in_port_t>(
            std::strtoul(at + std::strlen("http://127.0.0.1:"), nullptr, 10));
    }
    ~Server() {
        kill(process, SIGTERM);
        waitpid(process, nullptr, 0);
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    pid_t process = 0;
    in_port_t port = 0;
};

/// Connects to the server and sends a request for `target`. Returns the socket.
int send_request(in_port_t port, const std::string& target) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::string request =
        "GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    if (connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        send(socket, request.data(), request.size(), 0) < 0) {
        throw std::runtime_error("the server does not answer");
    }
    return socket;
}

/// Throws std::runtime_error unless the server reads at least `processes` processes.
void check_that_all_are_read(in_port_t port, unsigned processes) {
    const int socket = send_request(port, "/api/processes");
    std::string answer;
    char bytes[16384];
    for (ssize_t got; (got = recv(socket, bytes, sizeof bytes, 0)) > 0;) {
        answer.append(bytes, static_cast<std::size_t>(got));
    }
    close(socket);
    unsigned read = 0;
    const std::string what = "\"readable\":true";
    for (auto at = answer.find(what); at != answer.npos; at = answer.find(what, at + 1)) ++read;
    if (read < processes) {
        throw std::runtime_error("the server reads only " + std::to_string(read) + " processes");
    }
}

/// An open page: reads the event stream of one process and drops it.
struct Page {
    Page(in_port_t port, pid_t process)
        : socket(send_request(port, "/api/stream?process=" + std::to_string(process))) {
        reader = std::thread([this] {
            char bytes[16384];
            for (ssize_t got; (got = recv(socket, bytes, sizeof bytes, 0)) > 0;) received += got;
        });
    }
    ~Page() {
        shutdown(socket, SHUT_RDWR);
        reader.join();
        close(socket);
    }
    Page(const Page&) = delete;
    Page& operator=(const Page&) = delete;

    int socket;
    ssize_t received = 0;  ///< written by the reader only
    std::thread reader;
};

double processor_seconds(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string line;
    std::getline(file, line);
    std::istringstream fields(line.substr(line.rfind(')') + 2));  // from the third field on
    std::string skipped;
    for (int i = 3; i < 14; ++i) fields >> skipped;
    double user = 0;
    double system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double mib_of(pid_t process, const std::string& field) {
    std::ifstream file("/proc/" + std::to_string(process) + "/status");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) / 1024;
    }
    return 0;
}

/// Measures for `options.seconds` and prints the result. Returns whether the aims were met.
bool measure(const char* state, const Server& server, const Options& options) {
    using Clock = std::chrono::steady_clock;
    const double before = processor_seconds(server.process);
    const Clock::time_point begin = Clock::now();
    std::this_thread::sleep_for(std::chrono::seconds(options.seconds));
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const double percent = 100 * (processor_seconds(server.process) - before) / seconds;
    const double resident = mib_of(server.process, "VmRSS");
    std::printf(
        "{\"state\":\"%s\",\"processes\":%u,\"pools\":%u,\"seconds\":%.1f,\"core_percent\":%.2f,"
        "\"resident_mib\":%.1f,\"own_mib\":%.1f,\"shared_mib\":%.1f,\"met\":%s}\n",
        state, options.processes, options.pools, seconds, percent, resident,
        mib_of(server.process, "RssAnon"), mib_of(server.process, "RssShmem"),
        percent <= max_percent && resident <= max_mib ? "true" : "false");
    std::fflush(stdout);
    return percent <= max_percent && resident <= max_mib;
}

int run(const Options& options) {
    const Children children(options);
    const Server server;
    std::this_thread::sleep_for(std::chrono::seconds(2));  // the start is not measured
    check_that_all_are_read(server.port, options.processes);
    bool met = measure("alone", server, options);
    const Page page(server.port, children.processes.front());
    met &= measure("one page open", server, options);
    return options.check && !met ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) {
    try {
        return run(read_options(count, arguments));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "serve_perf: %s\n", error.what());
        return 2;
    }
}
