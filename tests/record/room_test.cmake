# A library to be unloaded by a test, and the C header's test in plain C.
add_library(strobe_record_test_names MODULE ${CMAKE_CURRENT_LIST_DIR}/name_library.c)
target_sources(strobe_record_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/annotate_c_calls.c)
set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/recording_test.cc APPEND PROPERTY COMPILE_DEFINITIONS
  STROBE_NAME_LIBRARY="$<TARGET_FILE:strobe_record_test_names>")
target_link_libraries(strobe_record_test PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(strobe_record_test strobe_record_test_names)

# 200 kills at random moments instead of the ten of every test run.
add_custom_target(kill_soak
  COMMAND ${CMAKE_COMMAND} -E env STROBE_KILLS=200 $<TARGET_FILE:strobe_record_test> --gtest_filter=KillSoak.*
  DEPENDS strobe_record_test USES_TERMINAL)
