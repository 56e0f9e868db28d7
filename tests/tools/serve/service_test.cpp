#include "serve/statistics_site.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "events.hpp"
#include "exchange.hpp"
#include "pool_process.hpp"
#include "socket_client.hpp"
#include "support/wait_until.hpp"

namespace tensorpool::command::serve {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::body_of;
using testing::Event;
using testing::events_in;
using testing::get;
using testing::MadeUpProcesses;
using testing::PoolProcess;
using testing::SocketClient;
using testing::status_of;

Service::Options options(std::chrono::milliseconds period = 10ms) {
    Service::Options options{read_listen_address("127.0.0.1:0")};
    options.period = period;
    return options;
}

std::string number(const PoolProcess& of) {
    return std::to_string(of.process());
}

void open_stream(SocketClient& client, const std::string& process) {
    client.send("GET /api/stream?process=" + process + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

/// Repeats a request until the answer is as expected.
template <class Answer>
std::string ask_until(int port, const std::string& target, Answer expected) {
    std::string answer;
    tensorpool::testing::wait_until("the answer of " + target + " is as expected", [&] {
        answer = get(port, target);
        return expected(answer);
    });
    return answer;
}

std::string ask_until_ok(int port, const std::string& target) {
    return ask_until(port, target, [](const std::string& of) { return status_of(of) == 200; });
}

/// Waits for `count` events of this name, and returns the data of the last.
json await(SocketClient& client, const std::string& name, std::size_t count) {
    json data;
    client.receive_until([&](const std::string& got) {
        std::size_t seen = 0;
        for (const Event& event : events_in(body_of(got))) {
            if (event.name == name && ++seen == count) data = event.data;
        }
        return seen >= count;
    });
    return data;
}

TEST(LiveService, ListsTheProcessesWithPools) {
    const PoolProcess one("one");
    const PoolProcess two("two");
    LiveProcesses processes;
    const Service service(processes, options());
    std::size_t found = 0;
    for (const json& listed : json::parse(body_of(get(service.port(), "/api/processes")))) {
        const bool ours = listed["process"] == one.process() || listed["process"] == two.process();
        if (!ours) continue;
        EXPECT_EQ(listed["readable"], true);
        EXPECT_EQ(listed["problem"], "");
        ++found;
    }
    EXPECT_EQ(found, 2u);
}

TEST(LiveService, ShowsAProcessThatStartsLater) {
    LiveProcesses processes;
    const Service service(processes, options());
    const PoolProcess late("late");
    ask_until_ok(service.port(), "/api/snapshot?process=" + number(late));
}

TEST(LiveService, StreamsAProcessFromItsHistoryToItsEnd) {
    PoolProcess process("stream", 2);
    LiveProcesses processes;
    const Service service(processes, options());
    SocketClient client(service.port());
    open_stream(client, number(process));

    const json first = await(client, "snapshot", 1)["snapshot"];
    // It may have to wait for a processor.
    json later;
    std::size_t number_of_snapshot = 5;
    do {
        later = await(client, "snapshot", number_of_snapshot++);
    } while (later["snapshot"]["pools"][0]["allocations"] <= first["pools"][0]["allocations"]);
    EXPECT_EQ(events_in(body_of(client.receive_until(""))).at(0).name, "history");
    ASSERT_EQ(first["pools"].size(), 2u);
    EXPECT_EQ(first["pools"][0]["name"], "stream0");
    EXPECT_GE(first["pools"][0]["in_use_bytes"], 100'000);
    EXPECT_EQ(later["rates"]["pools"].size(), 2u);

    process.kill();
    EXPECT_GE(await(client, "ended", 1)["time"], later["time"]);
}

TEST(LiveService, HasAHistoryForAPageOpenedLate) {
    const PoolProcess process("past");
    LiveProcesses processes;
    const Service service(processes, options());
    tensorpool::testing::wait_until("the history has ten samples", [&] {
        SocketClient client(service.port());
        open_stream(client, number(process));
        return await(client, "history", 1)["pools"][0]["t"].size() >= 10;
    });
}

TEST(LiveService, OmitsAnEndedProcessFromTheNextScrape) {
    PoolProcess process("scrape");
    LiveProcesses processes;
    const Service service(processes, options(1h));
    const std::string label = "pid=\"" + number(process) + "\"";
    EXPECT_NE(get(service.port(), "/metrics").find(label), std::string::npos);
    process.kill();
    EXPECT_EQ(get(service.port(), "/metrics").find(label), std::string::npos);
}

/// With one simulated process, 7.
class ServiceTest : public ::testing::Test {
protected:
    ServiceTest() { testing::set_time(processes.add(7).snapshot, 0); }

    MadeUpProcesses processes;
    Service::Options fast = options();
};

TEST_F(ServiceTest, AnswersBesideSixtyFourUnreadStreams) {
    const Service service(processes, fast);
    std::vector<SocketClient> streams;
    for (int i = 0; i < 64; ++i) {
        open_stream(streams.emplace_back(service.port()), "7");
        EXPECT_TRUE(streams.back().has_answer(30'000));
    }
    EXPECT_EQ(status_of(get(service.port(), "/metrics")), 200);
    EXPECT_EQ(status_of(get(service.port(), "/api/stream?process=7")), 503);
    streams.pop_back();
    tensorpool::testing::wait_until("a stream is free again", [&] {
        SocketClient client(service.port());
        open_stream(client, "7");
        return status_of(client.receive_until("\r\n\r\n")) == 200;
    });
}

TEST_F(ServiceTest, RejectsAConnectionTooManyAtOnce) {
    fast.limits.connections = fast.limits.streams = 8;
    const Service service(processes, fast);
    std::vector<SocketClient> streams;
    for (int i = 0; i < 8; ++i) {
        open_stream(streams.emplace_back(service.port()), "7");
        streams.back().receive_until("event: snapshot");
    }
    SocketClient refused(service.port());
    EXPECT_EQ(status_of(refused.receive_all()), 503) << "before it sent a request";
    EXPECT_EQ(status_of(get(service.port(), "/metrics")), 503);
    streams.pop_back();
    ask_until_ok(service.port(), "/metrics");
}

TEST_F(ServiceTest, ClosesTheLongestIdleConnectionForANewOne) {
    fast.limits.connections = 2;
    const Service service(processes, fast);
    std::vector<SocketClient> idle;
    for (int i = 0; i < 5; ++i) {
        idle.emplace_back(service.port());
        EXPECT_EQ(status_of(get(service.port(), "/metrics")), 200);
    }
    EXPECT_EQ(idle.front().receive_all(), "");
}

TEST_F(ServiceTest, EndsAStreamWhenItsClientDisconnects) {
    fast.limits.connections = 1;
    const Service service(processes, fast);
    for (int i = 0; i < 10; ++i) {
        ask_until_ok(service.port(), "/api/processes");
        SocketClient client(service.port());
        open_stream(client, "7");
        client.receive_until("\r\n\r\n");
    }
}

/// Sends a byte again and again until the server answers. Returns the status of its answer.
int status_for_endless(int port, const std::string& begin) {
    SocketClient client(port);
    client.send(begin);
    while (!client.has_answer(5)) client.send("x");
    return status_of(client.receive_all());
}

TEST_F(ServiceTest, EndsARequestThatArrivesByteByByte) {
    fast.limits.request = 100ms;  // which always pass: nothing has to happen before
    const Service service(processes, fast);
    const std::string head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ";
    EXPECT_EQ(status_for_endless(service.port(), head), 408);
}

TEST_F(ServiceTest, EndsABodyThatArrivesByteByByte) {
    fast.limits.request = 100ms;
    const Service service(processes, fast);
    const std::string head =
        "POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4096\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n\r\n";
    EXPECT_EQ(status_for_endless(service.port(), head), 408);
}

TEST_F(ServiceTest, ClosesAnIdleConnection) {
    fast.limits.idle = 50ms;  // which always pass: nothing has to happen before
    const Service service(processes, fast);
    SocketClient silent(service.port());
    EXPECT_EQ(silent.receive_all(), "");
}

TEST_F(ServiceTest, DisconnectsAClientThatDoesNotRead) {
    fast.limits.connections = 1;
    fast.limits.write = 50ms;
    fast.period = 1ms;
    processes.all[7].snapshot.pools.resize(200, testing::made_up_pool(1, "pool"));
    const Service service(processes, fast);
    SocketClient deaf(service.port(), 4096);
    open_stream(deaf, "7");
    ASSERT_TRUE(deaf.has_answer(30'000));
    ask_until_ok(service.port(), "/api/processes");
}

TEST_F(ServiceTest, RejectsHeadersThatAreTooLong) {
    const Service service(processes, fast);
    SocketClient client(service.port());
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(100'000, 'x') +
                "\r\n\r\n");
    EXPECT_EQ(status_of(client.receive_all()), 431);
}

TEST_F(ServiceTest, AnswersManyRequestsOfOneConnection) {
    const Service service(processes, fast);
    SocketClient client(service.port());
    for (std::size_t i = 1; i <= 20; ++i) {
        client.send("GET /api/processes HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.receive_until([i](const std::string& got) {
            return testing::answers_in(got) == i && got.ends_with("]");
        });
    }
}

TEST_F(ServiceTest, EndsWhileStreamsAreOpen) {
    std::vector<SocketClient> streams;
    {
        const Service service(processes, options(1h));
        for (int i = 0; i < 10; ++i) {
            open_stream(streams.emplace_back(service.port()), "7");
            streams.back().receive_until("event: snapshot");
        }
        streams.emplace_back(service.port());
    }
    for (SocketClient& stream : streams) stream.receive_all();
}

TEST_F(ServiceTest, CanListenAgainAtOnceAfterItsEnd) {
    for (int i = 0; i < 5; ++i) {
        const Service service(processes, fast);
        EXPECT_EQ(status_of(get(service.port(), "/api/processes")), 200);
        fast.address = read_listen_address("127.0.0.1:" + std::to_string(service.port()));
    }
}

}  // namespace
}  // namespace tensorpool::command::serve
