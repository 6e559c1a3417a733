BEGIN TRANSACTION;
CREATE TABLE about (
    name TEXT PRIMARY KEY, value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "about" VALUES('matrix','[{"attack": 0.3333333333333333, "test": 0.3333333333333333, "train": 0.3333333333333333}, {"adversary": [["coin", "coin", {}]], "auditor": [["counter", "counter", {"mechanism": {"use": "hiss"}}]], "corrector": [["flip", "flip", {}]], "dataset": [["flock", "flock", {}], ["flock", "three", {"groups": 3}]], "disclosure": [["oracle", "oracle", {}]], "learner": [["parrot", "parrot", {}], ["parrot", "biting", {"fails": "raises"}]], "mechanism": [], "policy": []}, []]');
INSERT INTO "about" VALUES('rank_by','gain');
INSERT INTO "about" VALUES('title','a run of version 1');
CREATE TABLE cell (
    position INTEGER PRIMARY KEY, key TEXT NOT NULL, labels TEXT NOT NULL, seed INTEGER NOT NULL,
    reason TEXT
);
INSERT INTO "cell" VALUES(0,'7ea06bd1b999618614d46b60e064a608','{"dataset": "flock", "learner": "parrot", "disclosure": "oracle", "adversary": "coin", "corrector": "flip"}',0,NULL);
INSERT INTO "cell" VALUES(1,'b415bf9dd319a8d52546007938a26805','{"dataset": "flock", "learner": "parrot", "disclosure": "oracle", "adversary": "coin", "corrector": "flip"}',1,NULL);
INSERT INTO "cell" VALUES(2,'3b54a95312b3acfe0f8fe8b88f596f9a','{"dataset": "flock", "learner": "biting", "disclosure": "oracle", "adversary": "coin", "corrector": "flip"}',0,NULL);
INSERT INTO "cell" VALUES(3,'693b76ce2ceb79eea14c8ab2921208b9','{"dataset": "flock", "learner": "biting", "disclosure": "oracle", "adversary": "coin", "corrector": "flip"}',1,NULL);
INSERT INTO "cell" VALUES(4,'4771b18c9686cfb6aceb0dda540785eb','{"dataset": "three", "learner": "parrot", "disclosure": "oracle", "adversary": "coin", "corrector": "flip"}',0,'flip turns around two groups only');
INSERT INTO "cell" VALUES(5,'d357988e4285ccf719ef64a2d05849d3','{"dataset": "three", "learner": "parrot", "disclosure": "oracle", "adversary": "coin", "corrector": "flip"}',1,'flip turns around two groups only');
INSERT INTO "cell" VALUES(6,'6fc26821e6f484062d8a13b33378586c','{"dataset": "three", "learner": "biting", "disclosure": "oracle", "adversary": "coin", "corrector": "flip"}',0,'flip turns around two groups only');
INSERT INTO "cell" VALUES(7,'b677e15e81da49a82ac5c06b915b74f3','{"dataset": "three", "learner": "biting", "disclosure": "oracle", "adversary": "coin", "corrector": "flip"}',1,'flip turns around two groups only');
INSERT INTO "cell" VALUES(8,'f05ac2febd51022f0c5c27ceb1cbd496','{"dataset": "flock", "learner": "parrot", "auditor": "counter"}',0,NULL);
INSERT INTO "cell" VALUES(9,'8efafb4e6387a4fd7ebd56f43469ae96','{"dataset": "flock", "learner": "parrot", "auditor": "counter"}',1,NULL);
INSERT INTO "cell" VALUES(10,'bda79002fa9f7b47038e9d3ecf9ffedc','{"dataset": "flock", "learner": "biting", "auditor": "counter"}',0,NULL);
INSERT INTO "cell" VALUES(11,'04c233b1520083434bf38cc753b442e2','{"dataset": "flock", "learner": "biting", "auditor": "counter"}',1,NULL);
INSERT INTO "cell" VALUES(12,'eb4cbf6ad89b304ddc1581f6ba820f1c','{"dataset": "three", "learner": "parrot", "auditor": "counter"}',0,NULL);
INSERT INTO "cell" VALUES(13,'6e6b4eb3ccd7498b70f36caed345d497','{"dataset": "three", "learner": "parrot", "auditor": "counter"}',1,NULL);
INSERT INTO "cell" VALUES(14,'06771a0329725494cd6dc29fba885102','{"dataset": "three", "learner": "biting", "auditor": "counter"}',0,NULL);
INSERT INTO "cell" VALUES(15,'e2ae9c50d13ccfbdf624535e683cba3f','{"dataset": "three", "learner": "biting", "auditor": "counter"}',1,NULL);
CREATE TABLE result (
    key TEXT PRIMARY KEY, session INTEGER NOT NULL REFERENCES session, status TEXT NOT NULL,
    reason TEXT, trace TEXT, seconds REAL NOT NULL, measures TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "result" VALUES('04c233b1520083434bf38cc753b442e2',2,'failed','train parrot: RuntimeError: the parrot bit','Traceback (most recent call last):
  File "/home/someone/fpbench/fpbench/actions.py", line 70, in execute
    value = ACTIONS[step.action](component, parents, step)
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/fpbench/fpbench/actions.py", line 131, in _train
    return learner.fit(parents[0].train.only(learner.needs), step.rng())
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/plugins/toys.py", line 98, in fit
    raise RuntimeError("the parrot\n bit")
RuntimeError: the parrot
 bit
',3.07523800074704922735e-03,'{}');
INSERT INTO "result" VALUES('06771a0329725494cd6dc29fba885102',2,'failed','train parrot: RuntimeError: the parrot bit','Traceback (most recent call last):
  File "/home/someone/fpbench/fpbench/actions.py", line 70, in execute
    value = ACTIONS[step.action](component, parents, step)
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/fpbench/fpbench/actions.py", line 131, in _train
    return learner.fit(parents[0].train.only(learner.needs), step.rng())
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/plugins/toys.py", line 98, in fit
    raise RuntimeError("the parrot\n bit")
RuntimeError: the parrot
 bit
',2.53675999920233152806e-03,'{}');
INSERT INTO "result" VALUES('3b54a95312b3acfe0f8fe8b88f596f9a',2,'failed','train parrot: RuntimeError: the parrot bit','Traceback (most recent call last):
  File "/home/someone/fpbench/fpbench/actions.py", line 70, in execute
    value = ACTIONS[step.action](component, parents, step)
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/fpbench/fpbench/actions.py", line 131, in _train
    return learner.fit(parents[0].train.only(learner.needs), step.rng())
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/plugins/toys.py", line 98, in fit
    raise RuntimeError("the parrot\n bit")
RuntimeError: the parrot
 bit
',3.94048199814278632402e-03,'{}');
INSERT INTO "result" VALUES('59b9f99237a2ca3aea77a4db6e9e8b48',1,'failed','train parrot: RuntimeError: the parrot bit','Traceback (most recent call last):
  File "/home/someone/fpbench/fpbench/actions.py", line 70, in execute
    value = ACTIONS[step.action](component, parents, step)
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/fpbench/fpbench/actions.py", line 131, in _train
    return learner.fit(parents[0].train.only(learner.needs), step.rng())
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/plugins/toys.py", line 98, in fit
    raise RuntimeError("the parrot\n bit")
RuntimeError: the parrot
 bit
',1.15068580016668420284e-02,'{}');
INSERT INTO "result" VALUES('67a8b56aa4ac1a5168491c18164c3c9b',1,'failed','train parrot: RuntimeError: the parrot bit','Traceback (most recent call last):
  File "/home/someone/fpbench/fpbench/actions.py", line 70, in execute
    value = ACTIONS[step.action](component, parents, step)
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/fpbench/fpbench/actions.py", line 131, in _train
    return learner.fit(parents[0].train.only(learner.needs), step.rng())
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/plugins/toys.py", line 98, in fit
    raise RuntimeError("the parrot\n bit")
RuntimeError: the parrot
 bit
',1.13870600034715607762e-02,'{}');
INSERT INTO "result" VALUES('693b76ce2ceb79eea14c8ab2921208b9',2,'failed','train parrot: RuntimeError: the parrot bit','Traceback (most recent call last):
  File "/home/someone/fpbench/fpbench/actions.py", line 70, in execute
    value = ACTIONS[step.action](component, parents, step)
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/fpbench/fpbench/actions.py", line 131, in _train
    return learner.fit(parents[0].train.only(learner.needs), step.rng())
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/plugins/toys.py", line 98, in fit
    raise RuntimeError("the parrot\n bit")
RuntimeError: the parrot
 bit
',3.21674800215987488627e-03,'{}');
INSERT INTO "result" VALUES('6e6b4eb3ccd7498b70f36caed345d497',1,'done',NULL,NULL,2.96426399290794506669e-03,'{"train_accuracy": 0.4, "test_accuracy": 0.4, "train_unfairness": 0.15, "test_unfairness": 0.2, "toy_note": 1.0, "members": 6.5523701644689725}');
INSERT INTO "result" VALUES('72ae6f562c36aee220342244351f1526',1,'done',NULL,NULL,2.98693799777538515627e-03,'{"train_accuracy": 0.45, "test_accuracy": 0.55, "train_unfairness": 0.4, "test_unfairness": 0.16428571428571428, "toy_note": 1.0, "members": 3.678017646458221}');
INSERT INTO "result" VALUES('7ea06bd1b999618614d46b60e064a608',1,'done',NULL,NULL,0.125,'{"gain": NaN, "a": -Infinity, "b": 1180591620717411303424, "c": null, "d": -0.0, "e": "words: \u00e9\u4e2d\ud83d\ude00", "f": true, "g": 9223372036854775807, "h": -9223372036854775808, "z": 0.30000000000000004}');
INSERT INTO "result" VALUES('8efafb4e6387a4fd7ebd56f43469ae96',1,'done',NULL,NULL,1.17700470000272616744e-02,'{"train_accuracy": 0.45, "test_accuracy": 0.75, "train_unfairness": 0.1, "test_unfairness": 0.05, "toy_note": 1.0, "members": 12.66818279329238}');
INSERT INTO "result" VALUES('a6051ebde10c921a1ae8c1e4efa11d08',1,'failed','train parrot: RuntimeError: the parrot bit','Traceback (most recent call last):
  File "/home/someone/fpbench/fpbench/actions.py", line 70, in execute
    value = ACTIONS[step.action](component, parents, step)
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/fpbench/fpbench/actions.py", line 131, in _train
    return learner.fit(parents[0].train.only(learner.needs), step.rng())
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/plugins/toys.py", line 98, in fit
    raise RuntimeError("the parrot\n bit")
RuntimeError: the parrot
 bit
',2.76705199576099403202e-03,'{}');
INSERT INTO "result" VALUES('b415bf9dd319a8d52546007938a26805',1,'done',NULL,NULL,1.20102319997386075556e-02,'{"people": 20, "majority_accuracy": 0.5, "prior_accuracy": 0.5, "initial_accuracy": 0.5, "corrected_accuracy": 0.5, "gain": 0.0, "asked_metric": "statistical-parity", "asked_tolerance": 0.1, "changes": 20, "change_precision": 0.5, "objective": 20.0, "solver_status": "feasible", "solver_gap": null, "proven": 0, "claim_metric": "statistical-parity", "claim_form": "to-overall", "claim_tolerance": 0.1, "claim_holds": 1, "train_accuracy": 0.45, "test_accuracy": 0.75, "train_unfairness": 0.1, "test_unfairness": 0.05, "correct_seconds": 0.00010834099884959869, "toy_note": 1.0}');
INSERT INTO "result" VALUES('bda79002fa9f7b47038e9d3ecf9ffedc',2,'failed','train parrot: RuntimeError: the parrot bit','Traceback (most recent call last):
  File "/home/someone/fpbench/fpbench/actions.py", line 70, in execute
    value = ACTIONS[step.action](component, parents, step)
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/fpbench/fpbench/actions.py", line 131, in _train
    return learner.fit(parents[0].train.only(learner.needs), step.rng())
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/plugins/toys.py", line 98, in fit
    raise RuntimeError("the parrot\n bit")
RuntimeError: the parrot
 bit
',3.77363499865168705582e-03,'{}');
INSERT INTO "result" VALUES('bdaece5702bca64487849bac015afbcb',1,'done',NULL,NULL,1.15391639992594718933e-02,'{"train_accuracy": 0.35, "test_accuracy": 0.4, "train_unfairness": 0.005555555555555556, "test_unfairness": 0.1, "toy_note": 1.0, "members": 9.259235870669514}');
INSERT INTO "result" VALUES('e2ae9c50d13ccfbdf624535e683cba3f',2,'failed','train parrot: RuntimeError: the parrot bit','Traceback (most recent call last):
  File "/home/someone/fpbench/fpbench/actions.py", line 70, in execute
    value = ACTIONS[step.action](component, parents, step)
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/fpbench/fpbench/actions.py", line 131, in _train
    return learner.fit(parents[0].train.only(learner.needs), step.rng())
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/someone/plugins/toys.py", line 98, in fit
    raise RuntimeError("the parrot\n bit")
RuntimeError: the parrot
 bit
',2.33840600049006752669e-03,'{}');
INSERT INTO "result" VALUES('e905983282727f7e9c4b25f5a7524d28',1,'done',NULL,NULL,1.1873059997014934197e-02,'{"people": 20, "majority_accuracy": 0.55, "prior_accuracy": 0.49500000000000005, "initial_accuracy": 0.4, "corrected_accuracy": 0.6, "gain": 0.19999999999999996, "asked_metric": "statistical-parity", "asked_tolerance": 0.1, "changes": 20, "change_precision": 0.6, "objective": 20.0, "solver_status": "feasible", "solver_gap": null, "proven": 0, "claim_metric": "statistical-parity", "claim_form": "to-overall", "claim_tolerance": 0.1, "claim_holds": 1, "train_accuracy": 0.35, "test_accuracy": 0.4, "train_unfairness": 0.005555555555555556, "test_unfairness": 0.1, "correct_seconds": 0.00010665800073184073, "toy_note": 1.0}');
INSERT INTO "result" VALUES('eb4cbf6ad89b304ddc1581f6ba820f1c',1,'done',NULL,NULL,3.28362599975662305951e-03,'{"train_accuracy": 0.4, "test_accuracy": 0.4, "train_unfairness": 0.15, "test_unfairness": 0.45, "toy_note": 1.0, "members": 8.310083888184236}');
INSERT INTO "result" VALUES('f05ac2febd51022f0c5c27ceb1cbd496',1,'done',NULL,NULL,1.22820050019072368741e-02,'{"train_accuracy": 0.6, "test_accuracy": 0.55, "train_unfairness": 0.1, "test_unfairness": 0.0, "toy_note": 1.0, "members": 13.639459202424572}');
CREATE TABLE session (
    id INTEGER PRIMARY KEY, started REAL NOT NULL, environment TEXT NOT NULL
);
INSERT INTO "session" VALUES(1,1.79528914000420904161e+09,'{"python": "3.11.7", "platform": "Linux-6.18.44-fc-v669-x86_64-with-glibc2.36", "machine": "x86_64", "packages": {"docplex": "2.32.264", "fairlearn": "0.15.0", "fpbench": "0.1.0", "fpbench-toys": "1.0", "highspy": "1.15.1", "lazy-loader": "0.6", "loky": "3.7.0", "numpy": "2.4.6", "pandas": "3.1.1", "platformdirs": "4.14.7", "pluggy": "1.7.0", "pooch": "1.9.0", "pydantic": "2.14.3", "pyomo": "6.10.1", "rich": "15.0.0", "scikit-learn": "1.9.1", "threadpoolctl": "3.8.0", "typer": "0.29.2"}, "solvers": {"cplex": "22.2.0.1", "docplex": "2.32.264", "highspy": "1.15.1", "pyomo": "6.10.1", "ortools": "9.15.6755", "scipy": "1.17.1"}, "blas": ["openblas 0.3.31.188.0"], "data": {}}');
INSERT INTO "session" VALUES(2,1.79528914004835677149e+09,'{"python": "3.11.7", "platform": "Linux-6.18.44-fc-v669-x86_64-with-glibc2.36", "machine": "x86_64", "packages": {"docplex": "2.32.264", "fairlearn": "0.15.0", "fpbench": "0.1.0", "fpbench-toys": "1.0", "highspy": "1.15.1", "lazy-loader": "0.6", "loky": "3.7.0", "numpy": "2.4.6", "pandas": "3.1.1", "platformdirs": "4.14.7", "pluggy": "1.7.0", "pooch": "1.9.0", "pydantic": "2.14.3", "pyomo": "6.10.1", "rich": "15.0.0", "scikit-learn": "1.9.1", "threadpoolctl": "3.8.0", "typer": "0.29.2"}, "solvers": {"cplex": "22.2.0.1", "docplex": "2.32.264", "highspy": "1.15.1", "pyomo": "6.10.1", "ortools": "9.15.6755", "scipy": "1.17.1"}, "blas": ["openblas 0.3.31.188.0"], "data": {}}');
CREATE TABLE timing (
    action TEXT, component TEXT, count INTEGER NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (action, component)
) WITHOUT ROWID;
INSERT INTO "timing" VALUES('audit','counter',16,1.54413799828034825623e-03);
INSERT INTO "timing" VALUES('correct','flip',8,4.29807998443720862269e-04);
INSERT INTO "timing" VALUES('disclose','oracle',8,2.20095997065072879195e-04);
INSERT INTO "timing" VALUES('guess','coin',5,7.22991000657202675938e-04);
INSERT INTO "timing" VALUES('load','flock',4,1.70852459959860425442e-02);
INSERT INTO "timing" VALUES('predict','parrot',16,1.21637099800864234566e-03);
INSERT INTO "timing" VALUES('score','',8,8.66813999891746789216e-04);
INSERT INTO "timing" VALUES('split','',10,5.0418340033502317965e-03);
INSERT INTO "timing" VALUES('train','parrot',16,3.93550400985986925661e-03);
COMMIT;
PRAGMA user_version = 1;
