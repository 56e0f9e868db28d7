#include "serve/statistics_site.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "common/settings.hpp"
#include "exchange.hpp"

namespace tensorpool::command::serve {
namespace {

using testing::status_of;

Request request_for(const std::string& process) {
    Request request;
    request.method = "POST";
    request.path = "/api/holders";
    request.parameters.emplace("process", process);
    return request;
}

class HolderAnswersTest : public ::testing::Test {
protected:
    static Response ask(HolderAnswers& answers, const std::string& process = "7",
                        bool has_token = true) {
        try {
            return answers.answer(request_for(process), has_token);
        } catch (const Refusal& refusal) {
            return refusal.response();
        }
    }

    testing::MadeUpServer server_{testing::the_token};
    unsigned asked_ = 0;
    HolderAnswers answers_{server_.watcher, [&](std::uint64_t process) {
                               ++asked_;
                               return "answer of " + std::to_string(process);
                           }};
};

TEST_F(HolderAnswersTest, AreThoseOfTheProcess) {
    EXPECT_EQ(ask(answers_).body, "answer of 7");
    EXPECT_EQ(asked_, 1U);
}

TEST_F(HolderAnswersTest, AreRefusedWithoutATokenFile) {
    const Response response = ask(answers_, "7", false);
    EXPECT_EQ(response.status, 403);
    EXPECT_NE(response.body.find("with --token-file"), std::string::npos);
    EXPECT_EQ(asked_, 0U);
}

TEST_F(HolderAnswersTest, AreOnlyAskedOfKnownProcesses) {
    EXPECT_EQ(ask(answers_, "8").status, 404);
    EXPECT_EQ(ask(answers_, "").status, 400);
    EXPECT_EQ(asked_, 0U);
}

TEST_F(HolderAnswersTest, ReportErrors) {
    HolderAnswers late(server_.watcher, [](std::uint64_t) -> std::string {
        throw CommandError(finding, "process 7 did not answer");
    });
    EXPECT_EQ(ask(late).status, 504);
    EXPECT_NE(ask(late).body.find("process 7 did not answer"), std::string::npos);
    HolderAnswers gone(server_.watcher, [](std::uint64_t) -> std::string {
        throw AttachError(AttachFailure::ended, "it ended");
    });
    EXPECT_EQ(ask(gone).status, 404);
}

TEST_F(HolderAnswersTest, AreAskedOneAtATime) {
    std::atomic<bool> is_asked = false;
    std::atomic<bool> may_answer = false;
    HolderAnswers slow(server_.watcher, [&](std::uint64_t) {
        is_asked = true;
        is_asked.notify_one();
        may_answer.wait(false);
        return std::string("late");
    });
    std::thread first([&] { EXPECT_EQ(ask(slow).body, "late"); });
    is_asked.wait(false);
    EXPECT_EQ(ask(slow).status, 503);
    may_answer = true;
    may_answer.notify_one();
    first.join();
}

TEST(HolderRequests, NeedTheTokenAndPost) {
    testing::MadeUpServer server(testing::the_token);
    EXPECT_EQ(status_of(server.post("/api/holders?process=7", "")), 401);
    const std::string bearer = "Authorization: Bearer " + testing::the_token + "\r\n";
    EXPECT_EQ(status_of(server.post("/api/holders?process=8", "", bearer)), 404);
    EXPECT_EQ(status_of(server.get("/api/holders?process=7", bearer)), 404);
    testing::MadeUpServer open;
    EXPECT_EQ(status_of(open.post("/api/holders?process=7", "")), 403);
}

}  // namespace
}  // namespace tensorpool::command::serve
