;; A list of checks that lies outside its memory.
(func (export "headcount:policy/policy@0.1.0#judge") (param i32) (result i32)
  (drop (call $verdict (local.get 0)))
  (i32.store (i32.const 1120) (i32.const 0x7fff0000))
  (i32.store (i32.const 1124) (i32.const 1))
  (i32.const 1024))
