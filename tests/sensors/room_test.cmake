# The interpreter that has the peers: mcap, rosbags.
set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/dds_test.cc ${CMAKE_CURRENT_LIST_DIR}/mcap_interop_test.cc
  APPEND PROPERTY COMPILE_DEFINITIONS STROBE_TEST_PYTHON="${STROBE_PYTHON}"
  STROBE_SENSORS_TESTS="${CMAKE_CURRENT_SOURCE_DIR}/sensors")
