target_link_libraries(strobe_bench_test PRIVATE nlohmann_json::nlohmann_json)
if(TARGET strobe_fake_nvml)
  add_dependencies(strobe_bench_test strobe_fake_nvml)
endif()
# The program that tests/cli/bench_test.py benchmarks.
add_executable(strobe_test_bench_program ${CMAKE_CURRENT_SOURCE_DIR}/bench/bench_program.cc)
target_link_libraries(strobe_test_bench_program PRIVATE strobe_bench)
strobe_warnings(strobe_test_bench_program)
