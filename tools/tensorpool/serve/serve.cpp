#include "common/options.hpp"

#include <spawn.h>
#include <sys/resource.h>

#include "serve/statistics_site.hpp"

namespace tensorpool::command {
namespace {

struct Arguments {
    std::string listen = "127.0.0.1:9464";
    std::string token_file;
    bool open = false;
};

serve::Service::Options read(const Arguments& arguments) {
    serve::Service::Options options;
    options.address = serve::read_listen_address(arguments.listen);
    if (!arguments.token_file.empty()) options.token = serve::read_token_file(arguments.token_file);
    if (options.token.empty() && !options.address.is_loopback) {
        throw CommandError(
            wrong_usage,
            fmt::format(
                "serve: --listen {} is reachable from other machines: also give --token-file, "
                "a file of mode 0600 with a token, or listen on 127.0.0.1",
                arguments.listen));
    }
    return options;
}

/// The URL for a browser. An address that means all addresses cannot be opened, so it is replaced.
std::string url_of(const serve::ListenAddress& address, int port) {
    const std::string name = address.is_any ? "127.0.0.1" : address.number;
    return fmt::format("http://{}/", serve::with_port(name, port));
}

void print_address(const std::string& url, int port, bool json) {
    if (json) {
        print_line(nlohmann::json{{"url", url}, {"port", port}}.dump());
    } else {
        print_line(
            fmt::format("tensorpool: serving {} and {}metrics; press Ctrl-C to stop", url, url));
    }
}

/// Raises the limit of descriptors as far as the system allows, because each watched process takes
/// some.
void raise_descriptor_limit() {
    constexpr rlim_t enough = 65536;
    rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, enough));
    setrlimit(RLIMIT_NOFILE, &limit);
}

/// Gives the browser a fresh signal mask, and /dev/null instead of the terminal.
struct Start {
    Start() {
        posix_spawn_file_actions_init(&files);
        for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
            posix_spawn_file_actions_addopen(&files, descriptor, "/dev/null", O_RDWR, 0);
        }
        posix_spawnattr_init(&attributes);
        sigset_t signals;
        sigemptyset(&signals);
        posix_spawnattr_setsigmask(&attributes, &signals);
        sigaddset(&signals, SIGPIPE);
        sigaddset(&signals, SIGCHLD);
        posix_spawnattr_setsigdefault(&attributes, &signals);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    ~Start() {
        posix_spawn_file_actions_destroy(&files);
        posix_spawnattr_destroy(&attributes);
    }
    Start(const Start&) = delete;
    Start& operator=(const Start&) = delete;

    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
};

/// Opens a browser with `xdg-open`; if it is missing, prints a message and does nothing. The token
/// is not part of the address, because other users can see the arguments of a command. The page
/// prompts for it.
void open_browser(const std::string& url) {
    std::signal(SIGCHLD, SIG_IGN);  // the browser is not waited for
    const Start start;
    std::string program = "xdg-open";
    std::string address = url;
    char* command[] = {program.data(), address.data(), nullptr};
    const int error =
        posix_spawnp(nullptr, command[0], &start.files, &start.attributes, command, environ);
    if (error == 0) return;
    print_error(fmt::format("tensorpool: serve: cannot start xdg-open: {}; open {} yourself",
                            std::strerror(error), url));
}

int run(const Settings& settings, const Arguments& arguments) {
    const serve::Service::Options options = read(arguments);
    const EndSignals signals;  // before any thread
    raise_descriptor_limit();
    serve::LiveProcesses processes;
    const serve::Service service(processes, options);
    const std::string url = url_of(options.address, service.port());
    print_address(url, service.port(), settings.json);
    if (arguments.open) open_browser(url);
    signals.wait();
    return success;
}

void declare_options(CLI::App& command, Settings& settings, Arguments& arguments) {
    add_option(command, "--listen ADDR:PORT", arguments.listen,
               "Address to listen on (127.0.0.1:9464); port 0: any free");
    add_option(command, "--token-file FILE", arguments.token_file,
               "A file of mode 0600 with a token of 16 characters or more, required from all "
               "clients; needed if other machines can connect");
    command.add_flag("--open", arguments.open, "Open the page in the browser");
    command.add_flag("--json", settings.json, "Print the address as JSON");
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool serve --open\n"
    "  tensorpool serve --listen 0.0.0.0:9464 --token-file ~/.tensorpool-token\n"
    "\n"
    "On a loopback address, any user of this machine can read the data, unless\n"
    "there is a token. Ctrl-C stops the server.";

constexpr const char* details =
    "The page is at /, the metrics for Prometheus at /metrics. The page's own data are at "
    "/api/processes, /api/snapshot?process=PID and /api/stream?process=PID. With --token-file, it "
    "also shows which call stacks hold the memory: as a flame graph at /flame-graph?process=PID, "
    "as JSON at /api/profile?process=PID, and as metrics of the ten largest sites. POST "
    "/api/holders?process=PID returns what refers to the largest arrays of a Python process (see "
    "tensorpool-holders(1)), and stops it for up to a second. Prometheus sends the "
    "token if configured: authorization: {credentials_file: FILE}. The page prompts for it, or "
    "takes it from the address, as #token=TOKEN, and holds it in a cookie that ends with the "
    "server. Requests are answered only under the names of the address listened on, which keeps "
    "pages of other sites out. To use another name, give it to --listen. At most 64 pages can be "
    "open at once; 16 more connections are left for other requests. The last ten minutes are kept "
    "even while no page is open, and processes that ended are remembered for as long.\n";

}  // namespace

void add_serve(CLI::App& app, Settings& settings) {
    add_subcommand(app, settings,
                   {"serve", "Serve a live page, and metrics for Prometheus", footer, details}, run,
                   declare_options);
}

}  // namespace tensorpool::command
