;; A check whose detail is no UTF-8.
(data (i32.const 2048) "\ff")
(func (export "headcount:policy/policy@0.1.0#judge") (param i32) (result i32)
  (drop (call $verdict (local.get 0)))
  (i32.store (i32.const 1120) (i32.const 3072))
  (i32.store (i32.const 1124) (i32.const 1))
  (i32.store (i32.const 3084) (i32.const 2048))
  (i32.store (i32.const 3088) (i32.const 1))
  (i32.const 1024))
