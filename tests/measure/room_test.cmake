# The example that users start from is read, and engines are opened where they are built.
set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/profile_config_test.cc APPEND PROPERTY COMPILE_DEFINITIONS
  STROBE_TEST_PROFILE="${PROJECT_SOURCE_DIR}/docs/profile-example.yaml")
foreach(name torch openvino opencv)
  if(TARGET strobe_engine_${name})
    add_dependencies(strobe_measure_test strobe_engine_${name})
  endif()
endforeach()
