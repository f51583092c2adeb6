;; Runs for ever when it is asked for room for the facts; it gives room for an empty text, the settings.
(func $allocate (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
  (loop $again (br_if $again (local.get $size)))
  (i32.const 4096))
