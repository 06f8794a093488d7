#include "bench/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "bench/environment_guard.h"
#include "support/test_data.h"

namespace strobe::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PlanOptions options(std::vector<std::string> command = {"sh", "-c", "true"}) {
  PlanOptions made;
  made.output_dir = "/out";
  made.command = std::move(command);
  return made;
}

TEST(Plan, ProcessesOnGpus) {
  PlanOptions wanted = options();
  wanted.processes = 2;
  wanted.gpus = 2;
  wanted.gpu_offset = 4;
  wanted.warmup = "3";
  const auto planned = plan_processes(wanted, {});
  ASSERT_TRUE(planned) << planned.error().to_string();
  ASSERT_EQ(planned->size(), 4U);
  const PlannedProcess& last = (*planned)[3];
  EXPECT_EQ(last.folder, "/out/proc_1_gpu_1");
  EXPECT_THAT(last.command, ElementsAre("sh", "-c", "true", "--device_id", "5", "--output_dir", "/out/proc_1_gpu_1"));
  EXPECT_EQ(last.environment.at("CUDA_VISIBLE_DEVICES"), "5");
  EXPECT_EQ(last.environment.at("BENCHMARK_PY"), "1");
  EXPECT_EQ(last.environment.at("STROBE_BENCH_WARMUP"), "3");
}

TEST(Plan, GpusAreCountedAmongThoseThatTheEnvironmentLeaves) {
  test::Environment environment;
  environment.set("CUDA_VISIBLE_DEVICES", "7, MIG-31000000-0000-0000-0000-000000000002");
  PlanOptions wanted = options();
  wanted.gpus = 2;
  const auto planned = plan_processes(wanted, {});
  ASSERT_TRUE(planned) << planned.error().to_string();
  EXPECT_EQ((*planned)[0].environment.at("CUDA_VISIBLE_DEVICES"), "7");
  EXPECT_EQ((*planned)[1].environment.at("CUDA_VISIBLE_DEVICES"), "MIG-31000000-0000-0000-0000-000000000002");
  EXPECT_THAT((*planned)[0].command, testing::Contains("7"));  // its --device_id
  EXPECT_THAT((*planned)[1].command, testing::Contains("0"));  // the only one there
  wanted.gpu_offset = 1;
  const auto refused = plan_processes(wanted, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kUsage);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("GPU 2"));
  EXPECT_THAT(refused.error().to_string(), HasSubstr("leaves 2 devices"));
  // A scheduler's own choice for each task; no device at all stays none.
  environment.set("CUDA_VISIBLE_DEVICES", "3");
  wanted.gpus = 4, wanted.gpu_offset = 0;
  EXPECT_EQ(plan_processes(wanted, Rank{.rank = 2, .size = 4, .local = 2, .run = {}})->at(0).visible, "3");
  environment.set("CUDA_VISIBLE_DEVICES", "");
  EXPECT_EQ(plan_processes(wanted, {})->at(3).visible, "");
}

TEST(Plan, NumbersOfWhatIsVisible) {
  EXPECT_EQ(gpu_number("3"), 3);
  for (const char* none : {"-1", "", "NoDevFiles"}) EXPECT_EQ(gpu_number(none), std::nullopt) << none;
  const auto library = std::filesystem::path(test::binaries_folder()).parent_path() / "lib" / "libstrobe_fake_nvml.so";
  if (!std::filesystem::exists(library)) GTEST_SKIP() << "the room gpu was not built";
  test::Environment environment;
  environment.set("STROBE_NVML_LIBRARY", library.string());
  environment.set("FAKE_NVML_DEVICES", "3");
  environment.set("FAKE_NVML_MIG", "1");
  EXPECT_EQ(gpu_number("GPU-ab02"), 2);
  EXPECT_EQ(gpu_number("MIG-31000000-0000-0000-0000-000000000002"), 0);
  EXPECT_EQ(gpu_number("GPU-ff"), std::nullopt);
}

TEST(Plan, TheRecorderStandsBeforeTheProgram) {
  PlanOptions wanted = options({"sh"});
  wanted.recorder = {"strobe", "record", "-o", "{}/trace.sqlite", "--"};
  const auto planned = plan_processes(wanted, {});
  EXPECT_THAT((*planned)[0].command, ElementsAre("strobe", "record", "-o", "/out/proc_0_gpu_0/trace.sqlite", "--", "sh",
                                                 "--device_id", "0", "--output_dir", "/out/proc_0_gpu_0"));
}

TEST(Plan, APythonFileGetsItsInterpreter) {
  const test::ScratchFolder folder;
  const std::string script = (folder / "sample.py").string();
  std::ofstream(script) << "pass\n";
  const auto planned = plan_processes(options({script, "-b", "4"}), {});
  ASSERT_TRUE(planned) << planned.error().to_string();
  EXPECT_EQ((*planned)[0].command[0], "python3");
  EXPECT_EQ((*planned)[0].command[1], script);
  EXPECT_EQ(plan_processes(options({(folder / "other.py").string()}), {}).error().kind(), ErrorKind::kNotFound);
}

TEST(Plan, WhatCannotBeIsRefused) {
  const auto says = [](const PlanOptions& wanted, const char* words) {
    const auto planned = plan_processes(wanted, {});
    ASSERT_FALSE(planned) << words;
    EXPECT_EQ(planned.error().exit_code(), 2);
    EXPECT_THAT(planned.error().to_string(), HasSubstr(words));
  };
  says(options({}), "no program");
  says(options({"sh", "-o", "x"}), "'-o'");
  says(options({"sh", "--output_dir=x"}), "--output_dir=x");
  says(options({"no-such-program-anywhere"}), "no such program");
  // A script's parser takes them joined, too; other programs may have options of one dash and several letters.
  const test::ScratchFolder folder;
  const std::string script = (folder / "sample.py").string();
  std::ofstream(script) << "pass\n";
  says(options({script, "-b", "4", "-ofoo"}), "'-ofoo' among the program's arguments");
  says(options({"python3", script, "-o=foo"}), "'-o=foo'");
  EXPECT_TRUE(plan_processes(options({"sh", "-offset"}), {}));
  EXPECT_TRUE(plan_processes(options({"sh", "-offset", script}), {}));
  PlanOptions none = options();
  none.processes = 0;
  says(none, "--num_processes 0");
  PlanOptions negative = options();
  negative.gpu_offset = -1;
  says(negative, "--gpu_offset_id -1");
}

TEST(Rank, OfOpenMpi) {
  test::Environment environment;
  EXPECT_FALSE(rank_of_environment());
  environment.set("OMPI_COMM_WORLD_RANK", "5");
  environment.set("OMPI_COMM_WORLD_SIZE", "8");
  environment.set("OMPI_COMM_WORLD_LOCAL_RANK", "1");
  environment.set("PMIX_NAMESPACE", "prterun-1");
  const auto rank = rank_of_environment();
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->rank, 5);
  EXPECT_EQ(rank->size, 8);
  EXPECT_EQ(rank->run, "prterun-1");
  PlanOptions wanted = options();
  wanted.gpus = 4;
  const auto planned = plan_processes(wanted, rank);
  ASSERT_EQ(planned->size(), 1U);
  EXPECT_EQ((*planned)[0].name(), "proc_5_gpu_1");
  wanted.processes = 2;
  EXPECT_FALSE(plan_processes(wanted, rank));
}

TEST(Rank, ABatchScriptOfSlurmIsNoStep) {
  test::Environment environment;
  environment.set("SLURM_PROCID", "0");
  environment.set("SLURM_NTASKS", "4");
  EXPECT_FALSE(rank_of_environment());
  environment.set("SLURM_STEP_NUM_TASKS", "4");
  environment.set("SLURM_LOCALID", "0");
  EXPECT_EQ(rank_of_environment()->size, 4);
}

}  // namespace
}  // namespace strobe::bench
