;; Takes 15 MiB more and 10 000 elements of a table for each agent, has another component take as much, breaks where it does
;; not get them, and judges well.
(table $own 0 funcref)
(func (export "headcount:policy/policy@0.1.0#judge") (param i32) (result i32)
  (local $elements i32)
  (local.set $elements (i32.mul (i32.load offset=68 (local.get 0)) (i32.const 10000)))
  (if (i32.eq (memory.grow (i32.const 240)) (i32.const -1)) (then unreachable))
  (if (i32.eq (table.grow $own (ref.null func) (local.get $elements)) (i32.const -1)) (then unreachable))
  (call $take (local.get $elements))
  (call $verdict (local.get 0)))
