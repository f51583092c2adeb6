;; Takes 30 MiB more, breaks where it does not get them, and judges well.
(func (export "headcount:policy/policy@0.1.0#judge") (param i32) (result i32)
  (if (i32.eq (memory.grow (i32.const 480)) (i32.const -1)) (then unreachable))
  (call $verdict (local.get 0)))
