# Public names, and the module each is in: see the docstring of `__init__.py`.
from .table_files import load_table as load_table
from .table_files import read_csv as read_csv
from .table_files import read_parquet as read_parquet
from .tabular_dataset import LabelledColumns as LabelledColumns
from .tabular_dataset import TabularDataset as TabularDataset
from .tabular_dataset import domain_field as domain_field
from .tabular_dataset import sensitive_field as sensitive_field
