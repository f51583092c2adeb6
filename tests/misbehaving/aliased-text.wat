;; 64 checks whose details are one and the same MiB of text.
(func (export "headcount:policy/policy@0.1.0#judge") (param i32) (result i32)
  (local $check i32)
  (local $end i32)
  (drop (call $verdict (local.get 0)))
  (local.set $check (call $allocate (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 3584)))
  (local.set $end (i32.add (local.get $check) (i32.const 3584)))
  ;; ok.checks
  (i32.store (i32.const 1120) (local.get $check))
  (i32.store (i32.const 1124) (i32.const 64))
  (loop $again
    ;; check.detail
    (i32.store offset=12 (local.get $check) (i32.const 0x100000))
    (i32.store offset=16 (local.get $check) (i32.const 0x100000))
    (local.set $check (i32.add (local.get $check) (i32.const 56)))
    (br_if $again (i32.lt_u (local.get $check) (local.get $end))))
  (i32.const 1024))
